"""Gate `identity`: what ran is what was frozen: interpreter, arguments, environment, exported files, one machine."""

from typing import assert_never

from labctl.analyze.card_evidence import CardEvidence
from labctl.analyze.component.card_leg import CardLeg
from labctl.analyze.gates.findings import Findings
from labctl.packet.environment import base_environment
from labctl.packet.model import Packet
from labctl.prereg.cards import CardVendor
from labctl.prereg.component_model import ComponentPreregistration
from labctl.records.card_order import CardOrder, ComponentOrder
from labctl.records.component import PreImport
from labctl.records.devices import Card
from labctl.records.leg import ProcessSeen

CODE_ROLES = ("worker.py", "component-", "file-")
ISOLATED = "-I"
MIB = 1 << 20
RUN_WORKER = "labctl/component/run_worker.py"


def judge_identity(
    findings: Findings, evidence: CardEvidence[CardLeg], said: ComponentPreregistration, leg: CardLeg
) -> None:
    """Judge who ran on one card."""
    root = None if leg.process is None else leg.process.root
    if leg.order is None or leg.process is None or leg.pre_import is None or root is None:
        findings.lacks(f"{leg.name}: its order, the record of its process, or its pre-import seal")
        return
    _judge_order(findings, evidence, said, leg.order)
    _judge_seal(findings, evidence.packet, leg.order, leg.pre_import)
    _judge_process(findings, leg.order, root, leg.pre_import)
    findings.equal("other processes of the leg", leg.name, (), leg.process.tree)
    if leg.postflight is not None:
        after = leg.postflight
        left = (after.exit_status, after.timed_out, after.killed, after.processes_left, after.shared_memory_left)
        findings.equal(
            "exit status, time-out, killed, processes and shared memory left", leg.name, (0, False, (), (), ()), left
        )
        findings.equal("processes that ran on after the worker", leg.name, (), after.outlived)


def expected_environment(packet: Packet, order: CardOrder, own: dict[str, str], card: Card | None) -> dict[str, str]:
    """The whole environment of a worker or a rank: the fixed base, what is passed on, what is registered, its card."""
    base = base_environment(home=order.paths.home, temporary=order.paths.temporary)
    passed = {name: order.environment[name] for name in packet.host.environment_passed if name in order.environment}
    return base | passed | own | ({} if card is None else selecting_environment(card))


def selecting_environment(card: Card) -> dict[str, str]:
    """What makes a process see one card alone."""
    match card.vendor:
        case CardVendor.CPU:
            return {}
        case CardVendor.NVIDIA:
            return {"CUDA_VISIBLE_DEVICES": card.identity}
        case CardVendor.INTEL:
            return {"ZE_AFFINITY_MASK": str(card.index), "ONEAPI_DEVICE_SELECTOR": "level_zero:0"}
        case _:
            assert_never(card.vendor)


def judge_limits(findings: Findings, packet: Packet, order: CardOrder, registered: tuple[int, int, int | None]) -> None:
    """Judge bounds on time, output and memory, and how cards were looked at, where the host profile says how."""
    limits = order.limits
    told = (limits.timeout_s, limits.log_limit_bytes, limits.memory_limit_bytes)
    findings.equal("limits of time, output and memory", order.leg, registered, told)
    if packet.host.devices is not None:
        findings.equal("how cards are looked at", order.leg, packet.host.devices, order.devices)


def code_of(packet: Packet) -> dict[str, str]:
    """The digest of every exported file by its role."""
    return {file.role: file.sha256 for file in packet.files if file.role.startswith(CODE_ROLES)}


def _judge_order(
    findings: Findings, evidence: CardEvidence[CardLeg], said: ComponentPreregistration, order: ComponentOrder
) -> None:
    where, marker = order.leg, evidence.marker
    host = (marker.host.machine_id_sha256, marker.host.boot_id)
    findings.equal("machine and boot of the order", where, host, (order.machine_id_sha256, order.boot_id))
    findings.equal("exported files of the order", where, code_of(evidence.packet), order.inputs)
    environment = expected_environment(evidence.packet, order, said.worker.environment, order.card)
    findings.equal("environment of the order", where, environment, order.environment)
    work = {name: getattr(said, name) for name in type(order.work).model_fields}
    findings.equal("work of the order", where, work, {name: getattr(order.work, name) for name in work})
    findings.equal("cards of the order", where, said.cards, order.selection)
    memory = None if said.worker.memory_mib is None else said.worker.memory_mib * MIB
    judge_limits(findings, evidence.packet, order, (said.worker.timeout_s, said.worker.log_limit_mib * MIB, memory))
    ends = (order.interpreter, ISOLATED, f"{order.code}/{RUN_WORKER}", f"{order.paths.leg}/order.json")
    argv = order.argv
    findings.equal("interpreter, isolation, program and order", where, ends, (*argv[:2], *argv[-2:]))


def _judge_seal(findings: Findings, packet: Packet, order: ComponentOrder, seal: PreImport) -> None:
    where = order.leg
    findings.equal("exported files, as the worker hashed them", where, code_of(packet), seal.code_sha256)
    findings.equal("interpreter", where, packet.interpreter.resolved_sha256, seal.executable_sha256)
    findings.equal("arguments, as the worker saw them", where, order.argv, seal.argv)
    findings.equal("environment, as the worker saw it", where, order.environment, seal.environment)
    findings.equal("isolation of the interpreter", where, 1, seal.flags.get("isolated"))


def _judge_process(findings: Findings, order: ComponentOrder, root: ProcessSeen, seal: PreImport) -> None:
    where = order.leg
    findings.equal("arguments of the process", where, order.argv, root.argv)
    findings.equal("environment of the process", where, order.environment, root.environment)
    findings.equal("other environment names of the process", where, (), root.environment_other)
    worker = (seal.pid, seal.start_ticks, seal.boot_id, seal.executable)
    findings.equal(
        "process, start and boot of the worker",
        where,
        worker,
        (root.pid, root.start_ticks, order.boot_id, root.executable),
    )
