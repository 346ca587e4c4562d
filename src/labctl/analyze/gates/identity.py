"""Gate `identity`: what ran is what was frozen, the arms differ in the treatment alone, and one server answered."""

import re
from itertools import pairwise

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.binary_origin import judge_binary_origin
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.turns import judge_turns
from labctl.analyze.start_values import environment_template, expected_environment, start_values
from labctl.errors import MalformedRecord
from labctl.frozen import strict_json
from labctl.prereg.arms import arm_argv, substitute_back, substitute_back_environment
from labctl.prereg.model import Arm
from labctl.records.leg import Listener, ProcessRecord
from labctl.records.order import WorkOrder
from labctl.records.verdict import GateOutcome

KIND = "identity"
TRANSIENT_MAPPINGS = ("/dev/", "/memfd:", "[")


def judge_identity(evidence: RunEvidence) -> GateOutcome:
    """Judge the observed arguments, environment, listener, version, nonce, libraries and order of every start."""
    findings = Findings(KIND, KIND)
    if not evidence.legs:
        findings.lacks("no start is there")
        return findings.outcome()
    for leg in evidence.legs:
        if leg.order is None or leg.process is None:
            findings.lacks(f"{leg.name}: no record of its process")
            continue
        _judge_process(findings, evidence, leg.order, leg.process)
        _judge_server(findings, evidence, leg, leg.process)
        _judge_models(findings, evidence, leg, leg.process)
    _judge_machine(findings, evidence)
    _judge_libraries(findings, evidence)
    judge_binary_origin(findings, evidence)
    _judge_times(findings, evidence)
    return findings.outcome()


def served_version(process: ProcessRecord) -> str | None:
    """The version that the server said, or None where it said none."""
    try:
        said = strict_json(process.readiness.version_body.encode(), "version")
    except MalformedRecord:
        return None
    version = said.get("version") if isinstance(said, dict) else None
    return version if isinstance(version, str) else None


def _judge_process(findings: Findings, evidence: RunEvidence, order: WorkOrder, process: ProcessRecord) -> None:
    packet, leg = evidence.packet, order.leg
    values = start_values(packet, order)
    template = arm_argv(packet.preregistration, order.arm)
    findings.equal("argv of the root process", leg, template, substitute_back(process.root.argv, template, values))
    expected = environment_template(packet, order, order.arm)
    observed = generic_environment(evidence, order, process.root.environment, expected)
    for name in sorted({*expected, *observed}):
        findings.equal(f"environment {name} of the root process", leg, expected.get(name), observed.get(name))
    findings.equal("other environment names of the root process", leg, (), process.root.environment_other)
    strangers = sorted(set(process.root.environment) - set(packet.environment_allowed))
    findings.equal("environment names off the allow-list", leg, [], strangers)


def generic_environment(
    evidence: RunEvidence, order: WorkOrder, observed: dict[str, str], template: dict[str, str]
) -> dict[str, str]:
    """An observed environment with placeholders for what differs from start to start."""
    values = start_values(evidence.packet, order)
    filled = expected_environment(evidence.packet, order, values)
    strange = {name: value for name, value in observed.items() if name not in template or value != filled[name]}
    generic = substitute_back_environment(strange, {}, values)
    return {name: generic[name] if name in generic else template[name] for name in observed}


def _judge_server(findings: Findings, evidence: RunEvidence, leg: LegEvidence, process: ProcessRecord) -> None:
    version = served_version(process)
    pattern = evidence.engine.version_pattern
    is_known = version is not None and re.fullmatch(pattern, version) is not None
    findings.holds("engine version", leg.name, (pattern, version), is_met=is_known)
    pids = {process.root.pid, *(seen.pid for seen in process.tree)}
    for when, listeners in (("when ready", process.listeners), ("after the last prompt", process.listeners_after)):
        _judge_listener(findings, f"{leg.name} {when}", listeners, pids)
    inodes = [[one.inode for one in listeners] for listeners in (process.listeners, process.listeners_after)]
    findings.equal("listening socket after the last prompt", leg.name, *inodes)
    findings.equal("start ticks of the root process after", leg.name, (process.root.start_ticks,), process.roots_after)
    if leg.before is not None and leg.after is not None:
        field = "process_start_time"
        findings.equal("process start time after", leg.name, leg.before.total(field), leg.after.total(field))
    if leg.postflight is not None:
        left = (leg.postflight.processes_left, leg.postflight.listeners_left, leg.postflight.shared_memory_left)
        findings.equal("processes, listeners and shared memory left", leg.name, ((), (), ()), left)


def _judge_listener(findings: Findings, where: str, listeners: tuple[Listener, ...], pids: set[int]) -> None:
    findings.equal("listening sockets on the port", where, 1, len(listeners))
    for listener in listeners:
        is_ours = bool(pids.intersection(listener.owner_pids))  # the record lists only processes of the start
        findings.holds(
            "owner of the listening socket", where, ("a process of the start", listener.owner_pids), is_met=is_ours
        )


def _judge_models(findings: Findings, evidence: RunEvidence, leg: LegEvidence, process: ProcessRecord) -> None:
    served = process.readiness.served_model
    if any("{nonce}" in part for part in evidence.packet.preregistration.service.command) and leg.order is not None:
        findings.holds(
            "nonce in the served model", leg.name, (leg.order.nonce, served), is_met=leg.order.nonce in served
        )
    for row in leg.rows:
        if row.models:
            findings.equal("model of every event", f"{leg.name} row {row.row}", (served,), row.models)


def _judge_machine(findings: Findings, evidence: RunEvidence) -> None:
    boots = {leg.started.boot_id for leg in evidence.legs if leg.started is not None}
    if boots:
        findings.equal("boot of every start", "run", {evidence.marker.host.boot_id}, boots)
    values = [(start_values(evidence.packet, leg.order)) for leg in evidence.legs if leg.order is not None]
    for what, found in (
        ("interpreters", {one.python for one in values}),
        ("model folders", {tuple(sorted(one.models.items())) for one in values}),
    ):
        findings.holds(f"distinct {what} over the starts", "run", (1, len(found)), is_met=len(found) <= 1)


def _judge_libraries(findings: Findings, evidence: RunEvidence) -> None:
    for arm in Arm:
        legs = evidence.arm(arm)
        for leg in legs[1:]:
            first, mapped = mapped_files(legs[0]), mapped_files(leg)
            if first is None or mapped is None:
                findings.lacks(f"{leg.name}: no list of mapped files to compare with {legs[0].name}")
            else:
                findings.equal(f"mapped files that differ from {legs[0].name}", leg.name, [], sorted(mapped ^ first))


def mapped_files(leg: LegEvidence) -> frozenset[str] | None:
    """The executable files that the start's processes mapped; None where not recorded.

    Left out is what a start makes for itself under random names: in its private folders, in shared memory, or deleted.
    """
    if leg.maps is None or leg.order is None:
        return None
    own = (f"{leg.order.paths.scratch}/", *TRANSIENT_MAPPINGS)
    paths = (line.rpartition("\t")[0] for line in leg.maps)
    return frozenset(path for path in paths if path and not path.startswith(own) and not path.endswith(" (deleted)"))


def _judge_times(findings: Findings, evidence: RunEvidence) -> None:
    judge_turns(findings, evidence.legs)
    for leg in evidence.legs:
        if leg.process is not None and leg.postflight is not None:
            _judge_row_times(findings, leg, (leg.process.readiness.ready_mono_ns, leg.postflight.stop_signal_mono_ns))


def _judge_row_times(findings: Findings, leg: LegEvidence, limits: tuple[int, int]) -> None:
    stamps = [limits[0]]
    for wire in leg.wires:
        stamps += [wire.connect_started.mono_ns, wire.closed.mono_ns]
    stamps.append(limits[1])
    is_ordered = all(earlier <= later for earlier, later in pairwise(stamps))
    findings.holds("rows between ready and stop, one after the other", leg.name, ("ordered", stamps), is_met=is_ordered)
