"""Student's t distribution: tails by the continued fraction of the incomplete beta function, quantiles by halving.

Tests hold both against scipy, which an analysis does not load: it would double the time that a judge takes to start.
"""

import math
from collections.abc import Iterator
from functools import cache

HALVINGS = 200
SMALLEST = 1e-300
PAIRS_OF_TERMS = 100
"""Ten times as many as the slowest fraction here takes to stand still."""


@cache
def t_quantile(share: float, degrees: int) -> float:
    """The value below which `share` of the distribution lies; for shares from a half."""
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > 1 - share:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, degrees) > 1 - share else (low, middle)
    return (low + high) / 2


def t_tail(value: float, degrees: int) -> float:
    """The share of the distribution above a value: a one-sided p value, to full precision however small."""
    if value < 0:
        return 1 - t_tail(-value, degrees)
    return _regular_beta(degrees / (degrees + value * value), value * value / (degrees + value * value), degrees) / 2


def _regular_beta(x: float, rest: float, degrees: int) -> float:
    """I_x(degrees / 2, 1 / 2); `rest` is 1 - x, kept apart because it may be far smaller than x."""
    a, b = degrees / 2, 0.5
    if x == 0 or rest == 0:
        return float(rest == 0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction (Abramowitz and Stegun 26.5.8)."""
    upper, lower = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = lower
    for term in _terms(x, a, b):
        lower = 1 / _apart(1 + term * lower)
        upper = _apart(1 + term / upper)
        value *= upper * lower
    return value


def _terms(x: float, a: float, b: float) -> Iterator[float]:
    for m in range(1, PAIRS_OF_TERMS + 1):
        yield m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))


def _apart(value: float) -> float:
    return value if abs(value) > SMALLEST else SMALLEST
