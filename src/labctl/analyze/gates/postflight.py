"""Gate `postflight`: every process of a start ended when it was asked, and left nothing."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import PostflightClean
from labctl.records.verdict import GateOutcome


def judge_postflight(evidence: RunEvidence, gate: PostflightClean) -> GateOutcome:
    """Judge what was left after the stop of every start, and what had to be killed."""
    findings = Findings(gate_id(gate), gate.kind)
    for leg in evidence.legs:
        found = leg.postflight
        if found is None:
            findings.lacks(f"{leg.name}: no record of what was left")
            continue
        findings.equal("processes that had to be killed", leg.name, (), found.killed)
        findings.equal("processes left", leg.name, (), found.processes_left)
        findings.equal("listening sockets left", leg.name, (), found.listeners_left)
        findings.equal("shared memory left", leg.name, (), found.shared_memory_left)
    return findings.outcome()
