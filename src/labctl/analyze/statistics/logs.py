"""Logarithms as exact multiples of one unit, so that sums and differences of them are exact and turn around exactly.

`log_of(1 / x) == -log_of(x)`, and a contrast of logs of equal speeds is 0 and not nearly 0.
"""

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

DIGITS = 40
UNIT_EXPONENT = 36
UNITS = 10**UNIT_EXPONENT
SLACK = Fraction(10_000, UNITS)
"""A contrast of logs that is smaller is that of equal products: roundings alone make it differ from 0."""
LARGEST_LOG = 700.0
_CONTEXT = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN)


def log_units(value: Fraction) -> int:
    """The natural logarithm of a positive fraction in units of 10^-36, rounded for numerator and denominator apart."""
    return _integer_log(value.numerator) - _integer_log(value.denominator)


def log_of(value: Fraction) -> Fraction:
    """The natural logarithm of a positive fraction, a multiple of 10^-36."""
    return Fraction(log_units(value), UNITS)


def log_of_gain(percent: Fraction) -> Fraction:
    """The log ratio of a gain that is given in percent."""
    return log_of(1 + percent / 100)


def settled(contrast: Fraction) -> Fraction:
    """A contrast of logs, or 0 where it is one of equal products."""
    return contrast if abs(contrast) > SLACK else Fraction(0)


def gain_of_log(log: float) -> float:
    """The gain in percent that a log ratio stands for; infinite where no float holds it."""
    return 100 * math.expm1(log) if log < LARGEST_LOG else math.inf


@lru_cache(maxsize=1024)  # a ratio and its reciprocal hold the same two integers
def _integer_log(value: int) -> int:
    scaled = _CONTEXT.scaleb(_CONTEXT.ln(Decimal(value)), UNIT_EXPONENT)
    return int(scaled.to_integral_value(ROUND_HALF_EVEN))
