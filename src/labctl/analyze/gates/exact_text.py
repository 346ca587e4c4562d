"""Gate `exact_text`: every row's text and finish reason equal the teacher's, and no word is said of its tokens."""

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.exact_tokens import FINISH, NO_ROW, TEXT, ExpectedRow, differences, expected_rows, has_rows
from labctl.analyze.gates.findings import Findings
from labctl.prereg.answer_gates import ExactText
from labctl.prereg.gate_kinds import gate_id
from labctl.records.verdict import GateOutcome


def judge_exact_text(evidence: RunEvidence, gate: ExactText) -> GateOutcome:
    """Judge the text of every row of every start; a teacher that holds no text is not evaluated."""
    findings = Findings(gate_id(gate), gate.kind)
    expected = expected_rows(evidence)
    if not has_rows(evidence.legs) or expected is None:
        findings.lacks(NO_ROW if expected else "neither a teacher nor a first control start is there")
        return findings.outcome()
    if any(TEXT in wanted.untold for wanted in expected):
        findings.lacks("the teacher holds no digest of a text")
        return findings.outcome()
    for leg in evidence.legs:
        _judge_leg(findings, leg, expected)
    return findings.outcome()


def _judge_leg(findings: Findings, leg: LegEvidence, expected: tuple[ExpectedRow, ...]) -> None:
    findings.equal("rows", leg.name, len(expected), len(leg.rows))
    exact = 0
    for row, wanted in zip(leg.rows, expected, strict=False):
        found = [one for one in differences(row, wanted) if one[0] in (TEXT, FINISH)]
        for what, told, observed in found:
            findings.equal(f"{what} against {wanted.source}", f"{leg.name} row {row.row}", told, observed)
        exact += bool(row.text) and not found
        findings.holds("text", f"{leg.name} row {row.row}", ("some", "none"), is_met=bool(row.text))
    findings.figures.append(figure("exact_texts", leg.name, exact, f"of {len(expected)} rows"))
