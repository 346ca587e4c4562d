"""All gates of a probe: who ran, whether the harness did its part, and how far every rank came."""

from dataclasses import dataclass

from labctl.analyze.card_evidence import CardEvidence
from labctl.analyze.component.devices import (
    cpus_of,
    judge_card_state,
    judge_discovery,
    judge_filtered,
    torch_identity,
)
from labctl.analyze.component.identity import (
    CODE_ROLES,
    ISOLATED,
    MIB,
    code_of,
    expected_environment,
    judge_limits,
    selecting_environment,
)
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.judge import Judged
from labctl.analyze.probe.probe_leg import ProbeLeg, RankFiles, present_ranks
from labctl.analyze.probe.ranks import Expected, Rank, form_faults, proved_stages, stage_checks
from labctl.analyze.probe.stages import classify
from labctl.digest import sha256_hex
from labctl.prereg.cards import CardVendor
from labctl.prereg.probe_model import ProbePreregistration
from labctl.records.card_order import ProbeOrder
from labctl.records.devices import Card, CardState
from labctl.records.probe import STAGES, DeviceSet, ImportDone
from labctl.records.verdict import VerdictKind

ALWAYS = ("identity", "devices", "harness", "stages")
OF_EVIDENCE = ("identity", "devices")
RUN_PROBE = "labctl/component/run_probe.py"


@dataclass(frozen=True, slots=True)
class JudgedRanks:
    """Every gate's outcome, the class, and how many ranks ended clean."""

    judged: Judged
    stage_class: VerdictKind
    clean_teardowns: int


def judge_probe(evidence: CardEvidence[ProbeLeg], said: ProbePreregistration) -> JudgedRanks:
    """Judge a probe; the class follows from what the ranks proved, and a harness fault comes before every class."""
    found = {kind: Findings(kind, kind) for kind in ALWAYS}
    leg = evidence.legs[0] if evidence.legs else None
    selected = judge_discovery(found["devices"], said.cards, evidence.discovery)
    if leg is None or leg.order is None:
        for findings in found.values():
            findings.lacks("probe: no leg with an order")
        return JudgedRanks(_judged(found), VerdictKind.HARNESS_FAILURE, 0)
    _judge_identity(found["identity"], evidence, said, (leg, leg.order))
    _judge_cards(found["devices"], leg, leg.order, selected)
    expected = Expected(said, leg.order.nonce)
    _judge_harness(found["harness"], leg, expected)
    ranks = [_rank(rank) for rank in present_ranks(leg)]
    proved = {rank.number: proved_stages(rank, expected) for rank in ranks}
    for rank in ranks:
        _judge_stages(found["stages"], rank, proved[rank.number], expected)
    if not ranks:
        found["stages"].lacks("probe: no rank whose records can be read")
    is_harness_sound = not found["harness"].misses and not found["harness"].gaps
    # Where the harness failed, nothing is known of how clean a rank ended.
    clean = sum(is_harness_sound and proved[rank.number] == STAGES and rank.exit_status == 0 for rank in ranks)
    found["stages"].add([figure("clean_teardowns", "probe", clean, "ranks")])
    outlived = () if leg.postflight is None else leg.postflight.outlived
    found["stages"].equal("processes that ran on after the ranks", "probe", (), outlived)
    exits = [rank.exit_status for rank in ranks]
    stage_class = classify(proved.values(), exits, outlived) if is_harness_sound else VerdictKind.HARNESS_FAILURE
    return JudgedRanks(_judged(found), stage_class, clean)


def _judged(found: dict[str, Findings]) -> Judged:
    return Judged(tuple(findings.outcome() for findings in found.values()), frozenset())


def _rank(files: RankFiles) -> Rank:
    status = None if files.exit is None or files.exit.timed_out else files.exit.exit_status
    return Rank(files.number, files.lines or (), status)


def _judge_identity(
    findings: Findings,
    evidence: CardEvidence[ProbeLeg],
    said: ProbePreregistration,
    ordered: tuple[ProbeLeg, ProbeOrder],
) -> None:
    marker, (leg, order) = evidence.marker, ordered
    nonce = sha256_hex(f"{marker.nonce}:{leg.name}".encode())[:32]
    named = (evidence.packet_id, evidence.marker_sha256, leg.name, leg.index, nonce, evidence.packet.kind)
    told = (order.packet_sha256, order.marker_sha256, order.leg, order.index, order.nonce, order.packet_kind)
    findings.equal("packet, marker, leg, place, nonce and kind of the order", "probe", named, told)
    host = (marker.host.machine_id_sha256, marker.host.boot_id)
    findings.equal("machine and boot of the order", "probe", host, (order.machine_id_sha256, order.boot_id))
    folder = f"{marker.run_dir}/data/legs/{leg.folder}"
    findings.equal("folder of the order", "probe", folder, "/".join(order.paths.leg.split("/")[-4:]))
    work = (said.ranks, said.backend, said.collective, said.timeouts, said.cards)
    asked = (order.ranks, order.backend, order.collective, order.timeouts, order.selection)
    findings.equal("work of the order", "probe", work, asked)
    findings.equal("exported files of the order", "probe", code_of(evidence.packet), order.inputs)
    judge_limits(findings, evidence.packet, order, (said.timeouts.total_s, said.log_limit_mib * MIB, None))
    environment = expected_environment(evidence.packet, order, said.environment, None)
    findings.equal("environment of the order", "probe", environment, order.environment)
    ends = (order.interpreter, ISOLATED, f"{order.code}/{RUN_PROBE}", f"{order.paths.leg}/order.json")
    findings.equal("interpreter, isolation, program and order", "probe", ends, (*order.argv[:2], *order.argv[-2:]))
    for rank in leg.ranks:
        _judge_rank_process(findings, rank, leg, order)


def _judge_rank_process(findings: Findings, rank: RankFiles, leg: ProbeLeg, order: ProbeOrder) -> None:
    where = f"rank {rank.number}"
    for line in rank.lines or ():
        if isinstance(line, ImportDone):
            findings.equal("order, as the rank hashed it", where, leg.order_sha256, line.detail.order_sha256)
            code = {role: digest for role, digest in order.inputs.items() if role.startswith(CODE_ROLES)}
            findings.equal("exported files, as the rank hashed them", where, code, line.detail.code_sha256)
    if rank.exit is None:
        return
    if rank.lines:
        findings.equal("process behind the lines", where, rank.exit.pid, rank.lines[0].pid)
    seen = rank.exit.seen
    if seen is not None and rank.number < len(order.rank_environment):
        environment = order.environment | order.rank_environment[rank.number]
        findings.equal("arguments of the process", where, (*order.argv, str(rank.number)), seen.argv)
        findings.equal("environment of the process", where, environment, seen.environment)
        findings.equal("other environment names of the process", where, (), seen.environment_other)


def _judge_cards(findings: Findings, leg: ProbeLeg, order: ProbeOrder, selected: tuple[Card, ...]) -> None:
    findings.equal("cards of the order", "probe", selected, order.cards)
    for number, (card, own) in enumerate(zip(order.cards, order.rank_environment, strict=False)):
        wanted = selecting_environment(card)
        findings.equal("what selects the card", f"rank {number}", wanted, {name: own.get(name) for name in wanted})
    for rank, card in zip(leg.ranks, order.cards, strict=False):
        _judge_card(findings, rank, card)


def _judge_card(findings: Findings, rank: RankFiles, card: Card) -> None:
    where = f"rank {rank.number}"
    if rank.exit is not None:
        judge_filtered(findings, where, rank.exit.visible, card)
    for line in rank.lines or ():
        if not isinstance(line, DeviceSet):
            continue
        if card.vendor is CardVendor.CPU:
            findings.equal("CPUs of the rank", where, cpus_of(card.bus_id), line.detail.cpus)
        elif line.detail.uuid is not None:
            identity = torch_identity(card.vendor, line.detail.uuid)
            findings.equal("identity as torch shows it", where, card.identity, identity)


def _judge_harness(findings: Findings, leg: ProbeLeg, expected: Expected) -> None:
    findings.holds("end of the leg", "probe", ("completed", leg.exit), is_met=leg.because is not None)
    if leg.postflight is None:
        findings.lacks("probe: no record of what was left")
    else:
        clean = sum(files.exit is not None and files.exit.exit_status == 0 for files in leg.ranks)
        if leg.exit is not None:
            findings.equal("ranks that exited with 0, as the leg counted", "probe", clean, leg.exit.rows_completed)
        left = (leg.postflight.processes_left, leg.postflight.shared_memory_left)
        findings.equal("processes and shared memory left", "probe", ((), ()), left)
        _judge_cards_afterwards(findings, leg, leg.postflight.cards)
    for files in leg.ranks:
        where = f"rank {files.number}"
        findings.equal("faults of its files", where, (), files.faults)
        if files.exit is not None:
            findings.equal("rank of its end", where, files.number, files.exit.rank)
            log = files.log or b""
            told = (files.exit.log_bytes, files.exit.log_sha256)
            findings.equal("size and digest of its log", where, (len(log), sha256_hex(log)), told)
        if files.lines is not None:
            for what, wanted, found in form_faults(_rank(files), expected):
                findings.equal(what, where, wanted, found)


def _judge_cards_afterwards(findings: Findings, leg: ProbeLeg, cards: tuple[CardState, ...]) -> None:
    """Every card that could be looked at again is that of a rank, and as it was."""
    seen = {rank.exit.visible.cards: rank.exit.visible for rank in leg.ranks if rank.exit is not None}
    for state in cards:
        where = f"card {state.before.identity}"
        findings.holds("a card of a rank", where, ("one", (state.before,) in seen), is_met=(state.before,) in seen)
        if (state.before,) in seen:
            judge_card_state(findings, where, state, seen[state.before,])


def _judge_stages(findings: Findings, rank: Rank, proved: tuple[str, ...], expected: Expected) -> None:
    where = f"rank {rank.number}"
    lines = {line.stage: line for line in rank.stages()}
    for stage in STAGES:
        if stage not in lines:
            findings.equal(stage, where, "proved", rank.failure())
            break
        for what, wanted, found in stage_checks(lines[stage], rank.number, expected):
            findings.equal(f"{stage}: {what}", where, wanted, found)
    if proved == STAGES:
        findings.equal("exit status", where, 0, rank.exit_status)
