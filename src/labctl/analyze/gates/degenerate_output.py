"""Gate `degenerate_output`: no row is filled by one token or by a short cycle of tokens."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.exact_tokens import NO_ROW, has_rows, is_degenerate
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import DegenerateOutput
from labctl.records.verdict import GateOutcome


def judge_degenerate_output(evidence: RunEvidence, gate: DegenerateOutput) -> GateOutcome:
    """Judge the tokens of every row; a teacher that is degenerate itself excuses nothing."""
    findings = Findings(gate_id(gate), gate.kind)
    if not has_rows(evidence.legs):
        findings.lacks(NO_ROW)
        return findings.outcome()
    for leg in evidence.legs:
        rows = [row for row in leg.rows if is_degenerate(row.token_ids)]
        named = ", ".join(f"row {row.row} from token {row.token_ids[0]}" for row in rows)
        sides = (f"at most {gate.max_rows}", f"{len(rows)}: {named}")
        what = "rows that one token or a short cycle fills"
        findings.holds(what, leg.name, sides, is_met=len(rows) <= gate.max_rows)
        findings.figures.append(figure("degenerate_rows", leg.name, len(rows), "rows"))
    return findings.outcome()
