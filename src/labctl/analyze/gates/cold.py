"""Gate `cold`: nothing came from a cache, and nothing ran before or beside the prompts."""

from labctl.analyze.counters import CounterDelta
from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import Cold, gate_id
from labctl.records.verdict import GateOutcome

ZERO_BEFORE = ("requests_succeeded", "prompt_tokens", "generation_tokens", "requests_running", "requests_waiting")
NOT_GROWN = ("prefix_cache_hits", "preemptions")
BAD_ENDINGS = ("abort", "error")


def judge_cold(evidence: RunEvidence, gate: Cold) -> GateOutcome:
    """Judge that every start was cold and was asked exactly the registered number of requests."""
    findings = Findings(gate_id(gate), gate.kind)
    for leg in evidence.legs:
        _judge_rows(findings, leg, gate)
        delta = counter_delta(evidence, leg)
        if delta is None:
            findings.lacks(f"{leg.name}: no counters")
        else:
            _judge_counters(findings, leg.name, delta, gate)
    return findings.outcome()


def counter_delta(evidence: RunEvidence, leg: LegEvidence) -> CounterDelta | None:
    """The counters of a start before and after, where both are there."""
    if leg.before is None or leg.after is None:
        return None
    return CounterDelta(leg.before, leg.after, frozenset(evidence.engine.off_when_absent))


def _judge_rows(findings: Findings, leg: LegEvidence, gate: Cold) -> None:
    for row in leg.rows:
        cached = None if row.usage is None else row.usage.cached_tokens
        if cached is None:
            findings.lacks(f"{leg.name} row {row.row}: usage does not say cached tokens; absent is not zero")
        else:
            findings.equal("cached tokens", f"{leg.name} row {row.row}", gate.cached_tokens, cached)


def _judge_counters(findings: Findings, where: str, delta: CounterDelta, gate: Cold) -> None:
    for field in ZERO_BEFORE:
        before = delta.before.total(field)
        if before is None and field not in delta.off_when_absent and delta.after.total(field) is None:
            findings.lacks(f"{where}: counter {field} is absent; absent is not zero")
        else:
            findings.equal(f"{field} before", where, 0, before or 0)
    for field in NOT_GROWN:
        grown = delta.grown(field)
        if grown is None:
            findings.lacks(f"{where}: counter {field} is absent; absent is not zero")
        else:
            findings.equal(f"{field} during the start", where, 0, grown)
    requests = delta.after.total("requests_succeeded")
    if requests is None:
        findings.lacks(f"{where}: counter requests_succeeded is absent")
        return
    findings.equal("requests after", where, gate.requests_per_start, requests)
    findings.figures.append(figure("requests", where, requests, "requests"))
    endings = delta.after.by_label("requests_succeeded", "finished_reason")
    for ending in BAD_ENDINGS:
        findings.equal(f"requests that ended with {ending}", where, 0, endings.get(ending, 0))
