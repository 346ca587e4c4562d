"""The phase stop: may the other legs run, given what the first pair showed?"""

from dataclasses import replace

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.judge import OF_ALL_STARTS, judge_gates
from labctl.errors import Problem
from labctl.protocol import FIRST_PAIR
from labctl.records.run import PhaseAnswer
from labctl.records.verdict import GateResult

LATER_KINDS = OF_ALL_STARTS | {"control_near", "moving_difference", "exact_within_arms"}


def answer_phase(evidence: RunEvidence, analyzer_sha256: str, problems: tuple[Problem, ...]) -> PhaseAnswer:
    """Judge the first pair alone: every gate but those that need all starts must have passed."""
    first_pair = replace(evidence, legs=evidence.legs[:FIRST_PAIR])
    judged = judge_gates(first_pair, stopped=True)
    reasons = [str(problem) for problem in problems]
    reasons += [
        f"gate {gate.id} {gate.result.value}: {gate.reason}"
        for gate in judged.outcomes
        if gate.kind not in LATER_KINDS and gate.result is not GateResult.PASSED
    ]
    return PhaseAnswer.model_validate(
        {
            "analyzer": "labctl",
            "analyzer_sha256": analyzer_sha256,
            "legs": {leg.folder: leg.manifest_sha256 or "" for leg in first_pair.legs if leg.is_closed},
            "continue": not reasons and len(first_pair.legs) == FIRST_PAIR,
            "reasons": tuple(reasons),
        }
    )


def phase_of_sealed_run(evidence: RunEvidence, analyzer_sha256: str) -> PhaseAnswer:
    """The same answer from a sealed run: only what the closed first pair holds may count."""
    folders = tuple(f"data/legs/{leg.folder}" for leg in evidence.legs[FIRST_PAIR:])
    later = ("data/outcome.json", "data/journal.jsonl", "data/phase1", *folders)
    problems = tuple(problem for problem in evidence.conflicts if not problem.where.startswith(later))
    return answer_phase(evidence, analyzer_sha256, problems)
