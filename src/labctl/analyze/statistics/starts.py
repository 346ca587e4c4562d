"""The inferential level: one value a start, in the order in which they ran; effect, drift, and what they may be off by.

`values` are logs of headlines in the verdict; the sums are the same for any other scale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from labctl.analyze.figures import mean
from labctl.analyze.statistics.logs import settled
from labctl.analyze.statistics.student import t_quantile, t_tail
from labctl.prereg.model import Arm

FEW_STARTS = 4
"""Up to here the drift-adjusted residual has one degree of freedom or none, and bounds leave the drift out."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Least squares of the values on arm (and position): the effect of B over A with its variance."""

    effect: Fraction
    drift: Fraction | None
    """Per step of one start; None where it was left out."""
    residual_squares: Fraction
    degrees: int
    leverage: Fraction
    """The variance of the effect in units of the variance of one start."""

    @property
    def start_variance(self) -> Fraction:
        """The variance between starts of one arm."""
        return self.residual_squares / self.degrees

    @property
    def error(self) -> float:
        """The standard error of the effect."""
        return math.sqrt(self.start_variance * self.leverage)

    @property
    def start_sd(self) -> float:
        """The standard deviation between starts of one arm."""
        return math.sqrt(self.start_variance)


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval of the effect."""

    lower: float
    upper: float


def fit_without_drift(values: Sequence[Fraction], arms: Sequence[Arm]) -> Fit | None:
    """The difference of the arms' means with the pooled variance; None where no start repeats another."""
    if len(values) - 2 < 1 or len(set(arms)) == 1:
        return None
    means = _means(values, arms)
    squares = sum((settled(value - means[arm]) ** 2 for value, arm in zip(values, arms, strict=True)), Fraction(0))
    effect = settled(means[Arm.CANDIDATE] - means[Arm.CONTROL])
    return Fit(effect, None, squares, len(values) - 2, _reciprocal_counts(arms))


def fit_with_drift(values: Sequence[Fraction], arms: Sequence[Arm]) -> Fit | None:
    """Least squares on arm and position; None where too few starts are left to see a residual."""
    degrees = len(values) - 3
    if degrees < 1 or len(set(arms)) == 1:
        return None
    places = [Fraction(place) for place in range(len(values))]
    centres = _means(places, arms)
    inner = [place - centres[arm] for place, arm in zip(places, arms, strict=True)]
    spread = sum((one**2 for one in inner), Fraction(0))
    drift = settled(sum((one * value for one, value in zip(inner, values, strict=True)), Fraction(0))) / spread
    level = [value - drift * place for value, place in zip(values, places, strict=True)]
    plain = fit_without_drift(level, arms)
    shift = centres[Arm.CANDIDATE] - centres[Arm.CONTROL]
    leverage = _reciprocal_counts(arms) + shift**2 / spread
    return None if plain is None else Fit(plain.effect, drift, plain.residual_squares, degrees, leverage)


def deciding_fit(values: Sequence[Fraction], arms: Sequence[Arm]) -> Fit | None:
    """The fit that bounds stand on, by rule: without drift up to four starts, drift-adjusted beyond."""
    return fit_without_drift(values, arms) if len(values) <= FEW_STARTS else fit_with_drift(values, arms)


def interval(fit: Fit, confidence: Fraction) -> Interval:
    """The two-sided interval; it turns around exactly when the arms are swapped."""
    half = t_quantile(float((1 + confidence) / 2), fit.degrees) * fit.error
    return Interval(float(fit.effect) - half, float(fit.effect) + half)


def bound_half(fit: Fit, confidence: Fraction) -> float:
    """How far a one-sided bound lies from the effect."""
    return t_quantile(float(confidence), fit.degrees) * fit.error


def lower_bound(fit: Fit, confidence: Fraction) -> float:
    """The one-sided lower bound of the effect."""
    return float(fit.effect) - bound_half(fit, confidence)


def candidate_bound(values: Sequence[Fraction], arms: Sequence[Arm], confidence: Fraction) -> float | None:
    """The one-sided lower bound of the candidates' mean; None where the spread between starts is not known."""
    fit = deciding_fit(values, arms)
    if fit is None or not fit.residual_squares:
        return None
    candidates = sum(arm is Arm.CANDIDATE for arm in arms)
    error = math.sqrt(fit.start_variance / candidates)
    return float(_means(values, arms)[Arm.CANDIDATE]) - t_quantile(float(confidence), fit.degrees) * error


def effect_t(fit: Fit) -> float:
    """Effect over standard error.

    Raises:
        ValueError: the starts of each arm are equal, which says nothing of their spread.
    """
    if not fit.residual_squares:
        message = "starts that do not vary have no t value"
        raise ValueError(message)
    return float(fit.effect) / fit.error


def effect_p(fit: Fit) -> float:
    """The one-sided p value of the effect, never 0.

    Raises:
        ValueError: as for `effect_t`.
    """
    return max(t_tail(effect_t(fit), fit.degrees), math.ulp(0.0))


def _means(values: Sequence[Fraction], arms: Sequence[Arm]) -> dict[Arm, Fraction]:
    sides = {arm: [value for value, one in zip(values, arms, strict=True) if one is arm] for arm in Arm}
    return {arm: mean(side) for arm, side in sides.items()}


def _reciprocal_counts(arms: Sequence[Arm]) -> Fraction:
    return sum((Fraction(1, sum(one is arm for one in arms)) for arm in Arm), Fraction(0))
