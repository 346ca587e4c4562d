"""Tests by signs: the exact sign test of row wins, and all sign flips of the row effects. P values are never 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from labctl.analyze.statistics.subsets import count_at_least

MOST_FLIPPED_ROWS = 26
"""All 2^P flips are counted; of more rows none is, and nothing is sampled."""


@dataclass(frozen=True, slots=True)
class Flips:
    """How many of all sign flips have a mean of at least the observed one, which is among them."""

    count: int
    total: int

    @property
    def p_value(self) -> Fraction:
        """The one-sided p value."""
        return Fraction(self.count, self.total)


@cache
def sign_test_p(wins: int, rows: int) -> Fraction:
    """The chance of as many wins or more, were each row a coin; a tie counts as a loss.

    Raises:
        ValueError: there is no row, or there are more wins than rows.
    """
    if not 0 <= wins <= rows or rows == 0:
        message = f"{wins} wins of {rows} rows"
        raise ValueError(message)
    ways, tail = 1, 1  # of no loss; then of one loss more, until there are as many as were observed
    for losses in range(1, rows - wins + 1):
        ways = ways * (rows - losses + 1) // losses
        tail += ways
    return Fraction(tail, 1 << rows)


def sign_flips(ratios: Sequence[Fraction]) -> Flips | None:
    """Count the flips of log ratios that leave a mean of at least the observed; None for no row or too many.

    A flip of the rows F lowers the sum by twice the sum over F, so it counts where the product over F is at most 1.
    """
    if not 0 < len(ratios) <= MOST_FLIPPED_ROWS:
        return None
    return Flips(count_at_least([1 / ratio for ratio in ratios], Fraction(1)), 1 << len(ratios))
