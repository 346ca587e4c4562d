"""Gate `exact_within_arms`: every start equals the first of its own arm."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.exact_tokens import NO_ROW, add_row_counts, compare_rows, expected_of, has_rows
from labctl.analyze.gates.findings import Findings
from labctl.prereg.answer_gates import ExactWithinArms
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.model import Arm
from labctl.records.verdict import GateOutcome


def judge_exact_within_arms(evidence: RunEvidence, gate: ExactWithinArms) -> GateOutcome:
    """Judge the starts of each registered arm; an arm with one start is not evaluated."""
    findings = Findings(gate_id(gate), gate.kind)
    for arm in Arm:
        if not any(Arm.of_leg(name) is arm for name in evidence.order):
            continue
        first, *others = evidence.arm(arm) or (None,)
        if first is None or not others:
            findings.lacks(f"arm {arm}: fewer than two starts are there")
        elif not has_rows((first, *others)):
            findings.lacks(f"arm {arm}: {NO_ROW}")
        else:
            for leg in others:
                compare_rows(findings, leg, expected_of(first))
            add_row_counts(findings, others, expected_of(first))
    return findings.outcome()
