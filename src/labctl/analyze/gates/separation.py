"""Gate `separation`: the slowest candidate start is faster than the fastest control start, by the margin."""

from fractions import Fraction

from labctl.analyze.figures import HUNDRED, decimal_text, figure, gain_percent
from labctl.analyze.gates.drift import NO_PLAN
from labctl.analyze.gates.findings import Findings
from labctl.analyze.speeds import RunSpeeds
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.model import Arm
from labctl.prereg.statistics_gates import Separation
from labctl.records.verdict import GateOutcome


def judge_separation(speeds: RunSpeeds, gate: Separation, planned_percent: Fraction | None) -> GateOutcome:
    """Judge the two nearest starts of the arms, by exact arithmetic."""
    findings = Findings(gate_id(gate), gate.kind)
    margin = separation_margin_percent(gate, planned_percent)
    headlines = speeds.headlines()
    if headlines is None or margin is None:
        findings.gaps += [*speeds.gaps(), *([NO_PLAN] if margin is None else [])]
        return findings.outcome()
    sided = list(zip(headlines, speeds.arms, strict=True))
    slowest = min(value for value, arm in sided if arm is Arm.CANDIDATE)
    fastest = max(value for value, arm in sided if arm is Arm.CONTROL)
    gap = gain_percent(slowest, fastest)
    findings.figures.append(figure("separation", "", gap, "percent"))
    sides = (f"more than {decimal_text(margin)} %", f"{decimal_text(gap)} %")
    is_met = slowest > fastest * (1 + margin / HUNDRED)
    findings.holds("slowest candidate start over fastest control start", "run", sides, is_met=is_met)
    return findings.outcome()


def separation_margin_percent(gate: Separation, planned_percent: Fraction | None) -> Fraction | None:
    """The margin of the gate: its own, or half of the planned effect."""
    if gate.margin_percent is not None:
        return Fraction(gate.margin_percent)
    return None if planned_percent is None else planned_percent / 2
