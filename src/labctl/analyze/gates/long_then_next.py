"""Gate `long_then_next`: each row that follows an output of full length equals the oracle."""

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.taught_rows import judge_taught_rows
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import LongThenNext
from labctl.records.verdict import GateOutcome

FOLLOWERS = "rows after an output of full length"


def judge_long_then_next(evidence: RunEvidence, gate: LongThenNext) -> GateOutcome:
    """Judge every row whose predecessor in the start used all the tokens that it was asked for."""
    findings = Findings(gate_id(gate), gate.kind)
    longest = evidence.packet.preregistration.workload.max_tokens

    def followers(leg: LegEvidence) -> tuple[int, ...]:
        return tuple(at + 1 for at, row in enumerate(leg.rows[:-1]) if len(row.token_ids) == longest)

    judge_taught_rows(findings, evidence, followers, (gate.min_boundaries, FOLLOWERS))
    return findings.outcome()
