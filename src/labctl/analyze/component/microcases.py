"""Gate `microcases`: what must be refused was, while really capturing; what must stay inert did; nothing changed."""

from typing import assert_never

from labctl.analyze.component.complete_rows import judge_drawn
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.rows_exact import differing_pairs
from labctl.analyze.component.seeds import derived_seed
from labctl.analyze.gates.findings import Findings
from labctl.prereg.cards import CardVendor
from labctl.prereg.component_model import MustRaise, MustStayInert
from labctl.records.component_row import Place
from labctl.records.microcase import MicrocaseRecord, MustRaiseRecord, MustStayInertRecord, State

CONDITIONS = {CardVendor.CPU: "jit_trace", CardVendor.NVIDIA: "cuda_graph", CardVendor.INTEL: "xpu_graph"}
OPERAND_DIGITS = 8
OPERAND_BELOW = 1_000_003


def judge_microcases(findings: Findings, worked: Worked) -> None:
    """Judge the microcases of one card."""
    registered = [(one.kind, one.name) for one in worked.said.microcases]
    found = [(one.kind, one.name) for one in worked.record.microcases]
    findings.equal("microcases", worked.leg, registered, found)
    records = {one.name: one for one in worked.record.microcases}
    for said in worked.said.microcases:
        record = records.get(said.name)
        match said:
            case MustRaise():
                if isinstance(record, MustRaiseRecord):
                    _judge_refused(findings, worked, said, record)
            case MustStayInert():
                if isinstance(record, MustStayInertRecord):
                    _judge_inert(findings, worked, said, record)
            case _:
                assert_never(said)


def _judge_refused(findings: Findings, worked: Worked, said: MustRaise, record: MustRaiseRecord) -> None:
    where = f"{worked.leg} {said.name}"
    findings.equal("arm and case", where, (said.arm, said.case), (record.arm, record.case))
    findings.equal("exception", where, said.exception, record.exception)
    findings.equal("message", where, said.message, record.message)
    findings.equal("what captured", where, CONDITIONS[worked.said.cards.vendor], record.condition)
    looks = [(one.asked, one.state) for one in (record.before, record.during, record.after)]
    findings.equal(
        "capturing before, during and after the call", where, [(False, False), (True, True), (False, False)], looks
    )
    canary = record.canary
    findings.equal("operand of the replay", where, replay_operand(worked.pre_import.nonce), canary.replay_operand)
    sums = (canary.operand + 1, canary.replay_operand + 1)
    findings.equal("captured and replayed sums", where, sums, (canary.captured, canary.replayed))
    seed = derived_seed(worked.said.seed, worked.card_index, (said.arm, said.name, 1))
    findings.equal("seed", where, seed, record.row_seed)
    for drawn in record.inputs:
        judge_drawn(findings, f"{where}, input {drawn.tensor.name}", drawn, record.row_seed)
    _judge_unchanged(findings, worked, record)


def replay_operand(nonce: str) -> int:
    """What the canary of a capture is replayed with: known to nobody before the packet is consumed."""
    return int(nonce[:OPERAND_DIGITS], 16) % OPERAND_BELOW


def _judge_inert(findings: Findings, worked: Worked, said: MustStayInert, record: MustStayInertRecord) -> None:
    where = f"{worked.leg} {said.name}"
    findings.equal("arm and size", where, (said.arm, said.name), (record.row.arm, record.row.case))
    unequal = [pair.name for pair in differing_pairs(record.row)]
    findings.equal("boundaries and caches that differ", where, [], unequal)
    _judge_unchanged(findings, worked, record)


def _judge_unchanged(findings: Findings, worked: Worked, record: MicrocaseRecord) -> None:
    where = f"{worked.leg} {record.name}"
    before, after = record.state_before, record.state_after
    for what in ("buffers", "inputs"):
        sides = (getattr(before, what), getattr(after, what))
        findings.equal(f"{what} after the call", where, *sides)
    if isinstance(record, MustRaiseRecord):
        findings.equal("caches after the call", where, before.caches, after.caches)
    findings.holds("buffers of the arm", where, ("at least one", len(before.buffers)), is_met=bool(before.buffers))
    findings.equal("buffers where the rows used them", where, _used(worked, record), _places(before))


def _used(worked: Worked, record: MicrocaseRecord) -> dict[str, tuple[int, int]]:
    """Where the rows of the same arm used the candidate's buffers, as `CASE.NAME`."""
    arm = record.arm if isinstance(record, MustRaiseRecord) else record.row.arm
    used = [(f"{row.case}.{place.name}", place) for row in worked.rows if row.arm == arm for place in row.buffers]
    return {name: _place(place) for name, place in used}


def _places(state: State) -> dict[str, tuple[int, int]]:
    return {tensor.name: _place(tensor) for tensor in state.buffers}


def _place(place: Place) -> tuple[int, int]:
    return place.storage_ptr, place.data_ptr
