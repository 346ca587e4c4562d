"""Gate `effect`: the lower confidence bound of the effect, from the spread between starts, is above the margin."""

from fractions import Fraction

from labctl.analyze.gates.findings import Findings
from labctl.analyze.speeds import RunSpeeds
from labctl.analyze.statistics.logs import gain_of_log, log_of, log_of_gain
from labctl.analyze.statistics.starts import Fit, bound_half, deciding_fit
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.statistics_gates import Effect
from labctl.records.verdict import GateOutcome

RELATIVE_TOLERANCE = 1e-9
"""Two analyzers agree that far: a bound that lies nearer to its limit is not judged."""
NO_SPREAD = "the starts of each arm are equally fast to the last digit: that says nothing of their spread"
TOO_FEW = "too few starts to know the spread between them"
TOO_NEAR = "the bound lies too near to its limit to be told from it"


def judge_effect(speeds: RunSpeeds, gate: Effect) -> GateOutcome:
    """Judge the one-sided bound; it stands on the fit that the number of starts allows."""
    findings = Findings(gate_id(gate), gate.kind)
    fit = fit_of(findings, speeds)
    if fit is None:
        return findings.outcome()
    half = bound_half(fit, Fraction(gate.confidence))
    judge_above(findings, fit, half, float(log_of_gain(Fraction(gate.margin_percent))))
    return findings.outcome()


def fit_of(findings: Findings, speeds: RunSpeeds) -> Fit | None:
    """The fit that bounds stand on; None, with the gap noted, where there is none."""
    headlines = speeds.headlines()
    if headlines is None:
        findings.gaps += speeds.gaps()
        return None
    fit = deciding_fit([log_of(value) for value in headlines], speeds.arms)
    if fit is None or not fit.residual_squares:
        findings.lacks(TOO_FEW if fit is None else NO_SPREAD)
        return None
    return fit


def judge_above(findings: Findings, fit: Fit, half: float, limit: float) -> None:
    """Check that the lower bound of the effect exceeds a limit (logs both), unless it is too near to tell."""
    bound = float(fit.effect) - half
    if is_near(fit, half, limit):
        findings.lacks(TOO_NEAR)
        return
    sides = (f"more than {gain_of_log(limit):.6g} %", f"{gain_of_log(bound):.6g} %")
    findings.holds("lower bound of the effect", "run", sides, is_met=bound > limit)


def is_near(fit: Fit, half: float, limit: float) -> bool:
    """Whether rounding could decide which side of a limit the lower bound lies on."""
    scale = abs(float(fit.effect)) + half + abs(limit)
    return abs(float(fit.effect) - half - limit) <= RELATIVE_TOLERANCE * scale
