"""Gate `cross_leg_exact`: every other start equals the first."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.exact_tokens import NO_ROW, add_row_counts, compare_rows, expected_of, has_rows
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import CrossLegExact, gate_id
from labctl.prereg.model import Arm
from labctl.records.verdict import GateOutcome


def judge_cross_leg_exact(evidence: RunEvidence, gate: CrossLegExact) -> GateOutcome:
    """Judge every start after the first against the first."""
    findings = Findings(gate_id(gate), gate.kind)
    first, *others = evidence.legs or (None,)
    if first is None or not others:
        findings.lacks("fewer than two starts are there")
        return findings.outcome()
    if not has_rows(evidence.legs):
        findings.lacks(NO_ROW)
        return findings.outcome()
    expected = expected_of(first)
    for leg in others:
        compare_rows(findings, leg, expected)
    add_row_counts(findings, others, expected)
    return findings.outcome()


def is_exact_within_arms(evidence: RunEvidence) -> bool:
    """Whether the starts of each arm equal each other, whatever the arms do between them."""
    findings = Findings("within_arms", "within_arms")
    for arm in Arm:
        first, *others = evidence.arm(arm) or (None,)
        for leg in others:
            if first is not None:
                compare_rows(findings, leg, expected_of(first))
    return not findings.misses
