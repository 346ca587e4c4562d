"""Gate `moving_difference`: no row's first difference lies elsewhere in another start of the same arm."""

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.exact_tokens import NO_TOKENS, ExpectedRow, expected_rows, first_difference, is_without_tokens
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.model import Arm
from labctl.prereg.start_gates import MovingDifference
from labctl.records.verdict import GateOutcome

SUSPICION = "one place in equal starts; where it moves, suspect carried-over state or memory that was never set"


def judge_moving_difference(evidence: RunEvidence, gate: MovingDifference) -> GateOutcome:
    """Judge, in every arm with two starts, whether each row differs from the oracle at one and the same place."""
    findings = Findings(gate_id(gate), gate.kind)
    expected = expected_rows(evidence)
    if expected is None:
        findings.lacks("neither a teacher nor a first control start is there")
        return findings.outcome()
    if is_without_tokens(expected):
        findings.lacks(NO_TOKENS)
        return findings.outcome()
    for arm in Arm:
        legs = evidence.arm(arm)
        if len(legs) > 1:
            _judge_arm(findings, legs, expected)
    return findings.outcome()


def _judge_arm(findings: Findings, legs: tuple[LegEvidence, ...], expected: tuple[ExpectedRow, ...]) -> None:
    names = ", ".join(leg.name for leg in legs)
    for at, wanted in enumerate(expected):
        found = {_place(leg, at, wanted): leg.name for leg in legs}
        shown = "; ".join(f"{place} in {name}" for place, name in found.items())
        findings.holds(f"first difference of row {at + 1}", names, (SUSPICION, shown), is_met=len(found) == 1)


def _place(leg: LegEvidence, at: int, wanted: ExpectedRow) -> str:
    if at >= len(leg.rows):
        return "no row"
    position = first_difference(leg.rows[at].token_ids, wanted.token_ids)
    return "none" if position is None else f"token {position}"
