"""Quantiles of Student's t: two own ways, held against scipy and against the closed forms."""

import math

import pytest
from scipy import stats
from scipy.special import stdtr, stdtrit

from labctl.analyze.statistics.student import t_quantile, t_tail
from labctl.standalone import exact_statistics as standalone

SHARES = (0.8, 0.9, 0.95, 0.975, 0.99, 0.999, 0.9999)


@pytest.mark.parametrize("degrees", [*range(1, 23), 40])
def test_quantiles_agree_with_scipy_and_with_each_other(degrees: int) -> None:
    for share in SHARES:
        expected = float(stdtrit(degrees, share))
        assert t_quantile(share, degrees) == pytest.approx(expected, rel=1e-12)
        assert standalone.t_quantile(share, degrees) == pytest.approx(expected, rel=2e-12)


def test_quantiles_are_the_closed_forms() -> None:
    for share in SHARES:
        assert t_quantile(share, 1) == pytest.approx(math.tan(math.pi * (share - 0.5)), rel=1e-12)
        a = 4 * share * (1 - share)
        assert t_quantile(share, 2) == pytest.approx(2 * (share - 0.5) * math.sqrt(2 / a), rel=1e-12)


def test_the_figures_that_plans_rest_on() -> None:
    assert round(t_quantile(0.95, 1), 2) == 6.31
    assert round(t_quantile(0.95, 2), 2) == 2.92


@pytest.mark.parametrize("degrees", [1, 2, 3, 5, 9, 21])
def test_tails_are_scipys_and_right_where_scipy_loses_digits(degrees: int) -> None:
    for value in (0.0, 0.001, 0.5, 1.0, 2.0, 12.7, 300.0, 1e6):
        assert t_tail(value, degrees) == pytest.approx(float(stdtr(degrees, -value)), rel=1e-11)
        assert t_tail(-value, degrees) == pytest.approx(1 - t_tail(value, degrees), rel=1e-12)
    assert t_tail(1e-8, 1) == 0.5 - math.atan(1e-8) / math.pi
    assert t_tail(1e6, degrees) == pytest.approx(float(stats.t.sf(1e6, degrees)), rel=1e-11)
