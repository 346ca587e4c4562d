"""Estimates by ranks with exact coverage: the median of rows, and the Hodges-Lehmann estimate of their middle."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import comb, lcm

NEAR_ZERO = 1e-12
"""A sum of two logs in floats that is nearer to 0 is settled by the product of the fractions."""
MOST_RANKED_ROWS = 128
"""Of more rows nothing is ranked: the averages grow with their square, the null with its square again."""


@dataclass(frozen=True, slots=True)
class RankInterval:
    """An interval between two order statistics, with the coverage that it has exactly."""

    lower: Fraction
    upper: Fraction
    lower_rank: int
    upper_rank: int
    coverage: Fraction


@dataclass(frozen=True, slots=True)
class WalshAverages:
    """Every mean of two effects, each also with itself, in order: n (n + 1) / 2 of them."""

    rows: int
    doubled: tuple[int, ...]
    """Twice each average, as an integer of `unit`."""
    unit: Fraction

    @classmethod
    def of(cls, effects: Sequence[Fraction]) -> "WalshAverages":
        """Those of these effects."""
        scale = lcm(*(effect.denominator for effect in effects))
        whole = [effect.numerator * (scale // effect.denominator) for effect in effects]
        sums = sorted(one + other for place, one in enumerate(whole) for other in whole[place:])
        return cls(len(effects), tuple(sums), Fraction(1, scale))

    def at(self, rank: int) -> Fraction:
        """The average of this rank, from 1."""
        return self.doubled[rank - 1] * self.unit / 2

    def median(self) -> Fraction:
        """The Hodges-Lehmann estimate."""
        middle = len(self.doubled) // 2
        return self.at(middle + 1) if len(self.doubled) % 2 else (self.at(middle) + self.at(middle + 1)) / 2

    def interval(self, confidence: Fraction) -> RankInterval | None:
        """The narrowest interval that covers at least so much by the signed-rank null; None for too few rows."""
        rank = walsh_rank(self.rows, confidence)
        if rank is None:
            return None
        upper_rank = len(self.doubled) + 1 - rank
        return RankInterval(self.at(rank), self.at(upper_rank), rank, upper_rank, _walsh_coverage(self.rows)(rank))


def median_interval(values: Sequence[Fraction], confidence: Fraction) -> RankInterval | None:
    """The narrowest symmetric interval of order statistics that covers the median at least so often, or None."""
    rank = median_rank(len(values), confidence)
    if rank is None:
        return None
    ordered, upper_rank = sorted(values), len(values) + 1 - rank
    return RankInterval(
        ordered[rank - 1], ordered[upper_rank - 1], rank, upper_rank, _median_coverage(len(values))(rank)
    )


def is_walsh_average_above_zero(ratios: Sequence[Fraction], rank: int) -> bool:
    """Whether the Walsh average of this rank, over the logs of these ratios, is above 0, exactly."""
    logs = [_float_log(one) for one in ratios]
    near = NEAR_ZERO * max(1.0, *map(abs, logs))
    below = 0
    for place, log in enumerate(logs):
        for other, second in enumerate(logs[place:], start=place):
            total = log + second
            below += total < -near or (total <= near and ratios[place] * ratios[other] <= 1)
    return below < rank


@cache
def walsh_rank(rows: int, confidence: Fraction) -> int | None:
    """The largest rank k for which Walsh averages k from below to k from above cover at least `confidence`."""
    if rows > MOST_RANKED_ROWS:
        return None
    return _largest_rank(rows * (rows + 1) // 2, confidence, _walsh_coverage(rows))


@cache
def median_rank(rows: int, confidence: Fraction) -> int | None:
    """The same for order statistics and the median."""
    if rows > MOST_RANKED_ROWS:
        return None
    return _largest_rank(rows, confidence, _median_coverage(rows))


@cache
def signed_rank_tails(rows: int) -> tuple[int, ...]:
    """At place w: how many subsets of the ranks 1 to `rows` have a sum of at most w."""
    counts = [1] + [0] * (rows * (rows + 1) // 2)
    for rank in range(1, rows + 1):
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return tuple(accumulate(counts))


def _float_log(ratio: Fraction) -> float:
    """Precise near 1, and defined for ratios that no float holds."""
    top, bottom = ratio.numerator, ratio.denominator
    if bottom < 2 * top < 4 * bottom:
        return math.log1p((top - bottom) / bottom)
    return math.log(top) - math.log(bottom)


def _walsh_coverage(rows: int) -> Callable[[int], Fraction]:
    return lambda rank: 1 - Fraction(2 * signed_rank_tails(rows)[rank - 1], 1 << rows)


def _median_coverage(rows: int) -> Callable[[int], Fraction]:
    return lambda rank: 1 - Fraction(2 * sum(comb(rows, below) for below in range(rank)), 1 << rows)


def _largest_rank(values: int, confidence: Fraction, coverage: Callable[[int], Fraction]) -> int | None:
    fitting = [rank for rank in range(1, values // 2 + 1) if coverage(rank) >= confidence]
    return max(fitting, default=None)
