"""Gate `kv_capacity`: the cache of keys and values holds enough tokens, and as many in every start of an arm."""

from labctl.analyze.capacity import kv_capacity_tokens
from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.model import Arm
from labctl.prereg.start_gates import KvCapacity
from labctl.records.verdict import GateOutcome


def judge_kv_capacity(evidence: RunEvidence, gate: KvCapacity) -> GateOutcome:
    """Judge the capacity that each server states, by its configuration metric or in its log."""
    findings = Findings(gate_id(gate), gate.kind)
    for arm in Arm:
        found: dict[str, int] = {}
        for leg in evidence.arm(arm):
            tokens = kv_capacity_tokens(evidence.engine, leg)
            if tokens is None:
                findings.lacks(f"{leg.name}: neither a metric nor the log says how many tokens the cache holds")
                continue
            found[leg.name] = tokens
            sides = (f"at least {gate.min_tokens}", tokens)
            findings.holds("kv_capacity_tokens", leg.name, sides, is_met=tokens >= gate.min_tokens)
            findings.figures.append(figure("kv_capacity_tokens", leg.name, tokens, "tokens"))
        if found:
            is_one = len({*found.values()}) == 1
            findings.holds(f"capacities in arm {arm}", "run", ("one", found), is_met=is_one)
    return findings.outcome()
