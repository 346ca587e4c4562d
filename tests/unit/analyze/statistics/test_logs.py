"""Logs of fractions: exact under inversion, near to the last digit, and zero for equal products."""

import math
from fractions import Fraction

import pytest

from labctl.analyze.statistics.logs import UNITS, gain_of_log, log_of, log_of_gain, settled
from labctl.standalone import exact_statistics as standalone
from tests.fakes.seeded import seeded


def some_fractions(count: int) -> list[Fraction]:
    rng = seeded(18)
    return [Fraction(rng.randint(1, 10 ** rng.randint(1, 60)), rng.randint(1, 10**12)) for _ in range(count)]


def test_a_log_is_the_logarithm() -> None:
    for value in some_fractions(200):
        assert float(log_of(value)) == pytest.approx(math.log(value.numerator) - math.log(value.denominator))
        assert abs(log_of(value) - standalone.log_of(value)) <= Fraction(1, UNITS)


def test_the_log_of_the_inverse_is_the_negative_exactly() -> None:
    for value in some_fractions(200):
        assert log_of(1 / value) == -log_of(value)
        assert standalone.log_of(1 / value) == -standalone.log_of(value)


def test_a_contrast_of_equal_products_settles_at_zero() -> None:
    for one, other in zip(some_fractions(100), some_fractions(100)[::-1], strict=True):
        contrast = log_of(one * other) - log_of(one) - log_of(other)
        assert settled(contrast) == 0
        assert standalone.settled(contrast) == 0
    assert settled(log_of(Fraction(10**15 + 1, 10**15))) != 0


def test_a_tiny_gain_keeps_its_digits() -> None:
    assert float(log_of_gain(Fraction(1, 10**12))) == pytest.approx(1e-14, rel=1e-12)
    assert gain_of_log(float(log_of_gain(Fraction("2.459")))) == pytest.approx(2.459, rel=1e-14)


def test_a_gain_that_no_float_holds_is_infinite() -> None:
    assert gain_of_log(1e6) == math.inf
    assert gain_of_log(-1e6) == -100
