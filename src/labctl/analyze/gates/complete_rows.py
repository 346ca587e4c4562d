"""Gate `complete_rows`: every prompt of every start was answered once, whole, with sound stamps."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.findings import Findings
from labctl.records.verdict import GateOutcome

KIND = "complete_rows"


def judge_complete_rows(evidence: RunEvidence) -> GateOutcome:
    """Judge that every row of every start counts."""
    findings = Findings(KIND, KIND)
    wanted = 0 if evidence.suite is None else len(evidence.suite.prompts)
    for leg in evidence.legs:
        findings.equal("rows", leg.name, wanted, len(leg.rows))
        for row in leg.rows:
            faults = "; ".join(f"{fault}: {detail}" for fault, detail in row.faults)
            findings.equal("faults", f"{leg.name} row {row.row}", "", faults)
    return findings.outcome()
