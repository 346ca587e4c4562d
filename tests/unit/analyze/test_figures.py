import statistics
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.analyze.figures import decimal_text, exact_text, figure, gain_percent, mean, median, quantile, sample_sd

FRACTIONS = st.lists(st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6), min_size=2, max_size=30)


@given(FRACTIONS)
def test_median_and_mean_agree_with_the_standard_library(values: list[Fraction]) -> None:
    assert median(values) == statistics.median(values)
    assert mean(values) == statistics.mean(values)


@given(FRACTIONS)
def test_the_sample_deviation_squares_to_the_variance(values: list[Fraction]) -> None:
    variance = statistics.variance(values)
    squared = Fraction(sample_sd(values)) ** 2
    assert abs(squared - variance) <= max(variance, Fraction(1)) / 10**30


def test_quantiles_interpolate_linearly() -> None:
    values = [Fraction(value) for value in (10, 20, 30, 40, 50, 60)]
    assert quantile(values, Fraction(1, 10)) == 15
    assert quantile(values, Fraction(0)) == 10
    assert quantile(values, Fraction(1)) == 60
    assert quantile(values[:1], Fraction(1, 10)) == 10


@pytest.mark.parametrize(
    ("value", "exact", "shown"),
    [
        (Fraction(3), "3", "3"),
        (Fraction(100), "100", "100"),
        (Fraction(-1, 3), "-1/3", "-0.333333333333"),
        (Fraction(10**20), "100000000000000000000", "100000000000000000000"),
        (Fraction(1, 10**15), "1/1000000000000000", "0.000000000000001"),
        (Fraction(123456789012345, 1000), "24691357802469/200", "123456789012"),
    ],
)
def test_numbers_are_written_exactly_and_never_scientifically(value: Fraction, exact: str, shown: str) -> None:
    assert (exact_text(value), decimal_text(value)) == (exact, shown)
    assert figure("x", "A1", value, "count").value == exact


@pytest.mark.parametrize(
    ("candidate", "control", "gain"),
    [
        ("94.92003934159611", "92.54961760665958", "2.5612442236238477"),
        ("95.06654837534518", "92.87797142677606", "2.3564004628315667"),
    ],
)
def test_headline_gains_have_the_published_digits(candidate: str, control: str, gain: str) -> None:
    exact = gain_percent(Fraction(candidate), Fraction(control))
    assert abs(exact - Fraction(gain)) < Fraction(1, 10**13)
    assert decimal_text(exact) == decimal_text(Fraction(gain))


def test_a_deviation_keeps_forty_digits() -> None:
    root = sample_sd([Fraction(0), Fraction(2)])
    assert root == Decimal(2).sqrt().__class__("1.414213562373095048801688724209698078570")
