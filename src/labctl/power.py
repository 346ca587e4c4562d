"""Power: what a planned campaign can see, given how far equal starts lie apart (noncentral t over starts).

The analysis that is planned for compares the mean log headline of the arms with the pooled spread between starts of one
arm: rA + rB - 2 degrees of freedom. `docs/power.md` has the formulas and what they leave out.
"""

import math
from dataclasses import dataclass

from scipy.special import chdtri, nctdtr, stdtrit

MIN_POWER = 0.8
MOST_STARTS = 2000
MOST_SDS = 1 << 20
PLANNING_SHARE = 0.8
BISECTIONS = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """An SD with its confidence limits."""

    lower: float
    """Lower 95 % limit."""
    sd: float
    """The estimate."""
    upper: float
    """Upper 95 % limit."""
    planning: float
    """Upper one-sided 80 % limit, which power is planned with."""


def sd_limits(sd: float, df: int) -> Limits:
    """Confidence limits of a standard deviation of normal values."""
    return Limits(_limit(sd, df, 0.025), sd, _limit(sd, df, 0.975), _limit(sd, df, PLANNING_SHARE))


def power_of(effect_in_sds: float, starts: tuple[int, int], alpha: float) -> float:
    """The chance that a one-sided t test over starts finds an effect, given in SDs between starts."""
    df = sum(starts) - 2
    if min(starts) < 1 or df < 1:
        return 0.0
    shift = effect_in_sds / math.sqrt(1 / starts[0] + 1 / starts[1])
    bound = float(stdtrit(df, 1 - alpha))
    missed = float(nctdtr(df, shift, bound))
    return 1.0 - missed if math.isfinite(missed) else float(shift > bound)  # it is no number for vast shifts


def minimum_effect_in_sds(starts: tuple[int, int], alpha: float, power: float) -> float:
    """The smallest effect, in SDs between starts, that is found with the given chance; infinite where none is."""
    if sum(starts) - 2 < 1 or min(starts) < 1:
        return math.inf
    low, high = 0.0, 1.0
    while power_of(high, starts, alpha) < power and high < MOST_SDS:
        high *= 2
    if power_of(high, starts, alpha) < power:
        return math.inf
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(middle, starts, alpha) >= power else (middle, high)
    return high


def starts_needed(effect_in_sds: float, alpha: float, power: float) -> int | None:
    """Starts an arm that find an effect with the given chance; None where thousands would not do."""
    if effect_in_sds <= 0 or power_of(effect_in_sds, (MOST_STARTS, MOST_STARTS), alpha) < power:
        return None
    low, high = 1, MOST_STARTS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(effect_in_sds, (middle, middle), alpha) >= power else (middle, high)
    return high


def _limit(sd: float, df: int, share: float) -> float:
    return sd * math.sqrt(df / float(chdtri(df, share)))
