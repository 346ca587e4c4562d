"""Gate `pair`: in each pair of neighbouring starts, the candidate is faster."""

from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import decimal_text
from labctl.analyze.gates.findings import Findings
from labctl.analyze.pairs import PairEffect, pair_effects
from labctl.prereg.gate_kinds import Pair, gate_id
from labctl.records.verdict import GateOutcome


def judge_pair(evidence: RunEvidence, gate: Pair) -> GateOutcome:
    """Judge row wins and gains of every pair that is there, by exact arithmetic."""
    findings = Findings(gate_id(gate), gate.kind)
    effects = pair_effects(evidence, gate.metric)
    if not effects:
        findings.lacks("no pair of starts is there")
    for effect in effects:
        findings.add(effect.figures())
        if effect.has_invalid_control:
            findings.lacks(f"{effect.name}: a control row has no {gate.metric}")
            continue
        wins = (f"at least {gate.min_row_wins} of {effect.rows}", effect.wins)
        findings.holds("row wins", effect.name, wins, is_met=effect.wins >= gate.min_row_wins)
        _judge_gains(findings, effect, gate)
    return findings.outcome()


def _judge_gains(findings: Findings, effect: PairEffect, gate: Pair) -> None:
    gains = (
        ("headline gain", gate.min_headline_gain_percent, effect.headline_gain_percent),
        ("median paired gain", gate.min_median_paired_gain_percent, effect.median_paired_gain_percent),
    )
    for what, floor, gain in gains:
        if floor is None:
            continue
        shown = "none: a candidate row does not count" if gain is None else f"{decimal_text(gain)} %"
        is_met = gain is not None and gain >= Fraction(floor)
        findings.holds(what, effect.name, (f"at least {floor} %", shown), is_met=is_met)
