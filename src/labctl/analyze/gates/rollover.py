"""Gate `rollover`: each row over a prompt of at least the registered length equals the oracle."""

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.taught_rows import judge_taught_rows
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import Rollover
from labctl.records.verdict import GateOutcome


def judge_rollover(evidence: RunEvidence, gate: Rollover) -> GateOutcome:
    """Judge every row whose prompt has the registered length, by the token ids that the server says it read."""
    findings = Findings(gate_id(gate), gate.kind)

    def long_prompts(leg: LegEvidence) -> tuple[int, ...]:
        lengths = enumerate(len(row.prompt_token_ids or ()) for row in leg.rows)
        return tuple(at for at, length in lengths if length >= gate.min_prompt_tokens)

    name = f"rows over at least {gate.min_prompt_tokens} prompt tokens"
    judge_taught_rows(findings, evidence, long_prompts, (gate.min_rows, name))
    return findings.outcome()
