"""Gate `resident_memory`: the processes of a start stay within a registered size."""

from labctl.analyze.capacity import resident_bytes
from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import ResidentMemory
from labctl.records.verdict import GateOutcome


def judge_resident_memory(evidence: RunEvidence, gate: ResidentMemory) -> GateOutcome:
    """Judge the largest sample of every start; samples are taken between rows."""
    findings = Findings(gate_id(gate), gate.kind)
    for leg in evidence.legs:
        largest = resident_bytes(leg)
        if largest is None:
            findings.lacks(f"{leg.name}: no samples of memory")
            continue
        sides = (f"at most {gate.max_bytes} bytes", largest)
        findings.holds("resident memory", leg.name, sides, is_met=largest <= gate.max_bytes)
        findings.figures.append(figure("resident_bytes", leg.name, largest, "bytes"))
    return findings.outcome()
