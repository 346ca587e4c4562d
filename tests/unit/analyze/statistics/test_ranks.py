"""Hodges-Lehmann estimates and medians, with intervals whose coverage is exact."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from labctl.analyze.statistics.logs import log_of
from labctl.analyze.statistics.ranks import (
    WalshAverages,
    is_walsh_average_above_zero,
    median_interval,
    median_rank,
    signed_rank_tails,
    walsh_rank,
)
from labctl.standalone import exact_statistics as standalone
from tests.fakes.seeded import seeded

VECTORS = 1000
AT_95 = Fraction(95, 100)


@pytest.mark.parametrize(("confidence", "rank", "coverage"), [("0.95", 18, 0.952), ("0.989", 11, 0.9895)])
def test_the_walsh_ranks_of_thirteen_rows(confidence: str, rank: int, coverage: float) -> None:
    found = WalshAverages.of([Fraction(number) for number in range(13)]).interval(Fraction(confidence))
    assert found is not None
    assert (found.lower_rank, found.upper_rank) == (rank, 92 - rank)
    assert float(found.coverage) == pytest.approx(coverage, abs=5e-4)
    assert standalone.walsh_rank(13, Fraction(confidence)) == (rank, found.coverage)


@pytest.mark.parametrize(
    ("confidence", "ranks", "coverage"), [("0.95", (3, 11), 0.978), ("0.9", (4, 10), 0.908), ("0.99", (2, 12), 0.997)]
)
def test_the_order_statistics_of_thirteen_rows(confidence: str, ranks: tuple[int, int], coverage: float) -> None:
    found = median_interval([Fraction(number) for number in range(13)], Fraction(confidence))
    assert found is not None
    assert (found.lower_rank, found.upper_rank) == ranks
    assert [found.lower, found.upper] == [rank - 1 for rank in ranks]
    assert float(found.coverage) == pytest.approx(coverage, abs=5e-4)
    assert standalone.median_rank(13, Fraction(confidence)) == (ranks[0], found.coverage)


def test_five_rows_give_no_interval_of_95_percent_and_six_do() -> None:
    for rank_of in (walsh_rank, median_rank, standalone.walsh_rank, standalone.median_rank):
        assert rank_of(5, AT_95) is None
    assert walsh_rank(5, Fraction(9375, 10000)) == 1
    assert walsh_rank(6, AT_95) == 1
    found = median_interval([Fraction(number) for number in range(6)], AT_95)
    assert found is not None
    assert found.coverage == Fraction(62, 64)
    assert WalshAverages.of([Fraction(1)] * 5).interval(AT_95) is None


def test_the_signed_rank_null_is_the_one_of_wilcoxons_exact_test() -> None:
    rng = seeded(10)
    for _ in range(VECTORS):
        rows = rng.randint(1, 13)
        magnitudes = rng.sample(range(1, 10**9), rows)
        effects = [Fraction(value * rng.choice((1, -1)), 10**6) for value in magnitudes]
        expected = stats.wilcoxon([float(one) for one in effects], alternative="greater", method="exact")
        averages = WalshAverages.of(effects)
        above = sum(value > 0 for value in averages.doubled)
        assert above == expected.statistic
        tails = signed_rank_tails(rows)
        p = 1 - Fraction(tails[above - 1] if above else 0, 2**rows)
        assert float(p) == pytest.approx(expected.pvalue, rel=1e-12)
        # the interval excludes 0 exactly where the test rejects at half of what the interval leaves out
        found = averages.interval(AT_95)
        assert found is None or (found.lower > 0) == (p <= (1 - found.coverage) / 2)


def test_both_analyzers_estimate_alike_on_random_vectors() -> None:
    rng = seeded(11)
    for _ in range(VECTORS):
        effects = [Fraction(rng.randint(-50, 50), rng.choice((1, 3, 7))) for _ in range(rng.randint(1, 14))]
        averages, other = WalshAverages.of(effects), standalone.walsh_averages(effects)
        assert [averages.at(rank) for rank in range(1, len(other) + 1)] == other
        assert averages.median() == standalone.middle_of(other)
        assert float(averages.median()) == pytest.approx(float(np.median([float(one) for one in other])))
        assert walsh_rank(len(effects), AT_95) == (standalone.walsh_rank(len(effects), AT_95) or (None,))[0]
        assert median_rank(len(effects), AT_95) == (standalone.median_rank(len(effects), AT_95) or (None,))[0]


def test_more_rows_than_can_be_ranked_are_not() -> None:
    for rank_of in (walsh_rank, median_rank, standalone.walsh_rank, standalone.median_rank):
        assert rank_of(128, AT_95) is not None
        assert rank_of(129, AT_95) is None


def test_coverage_is_scipys_binomial() -> None:
    for rows in range(6, 60):
        found = median_interval([Fraction(number) for number in range(rows)], AT_95)
        assert found is not None
        assert float(found.coverage) == pytest.approx(1 - 2 * stats.binom.cdf(found.lower_rank - 1, rows, 0.5))
        assert 1 - 2 * stats.binom.cdf(found.lower_rank, rows, 0.5) < 0.95


def test_the_sign_of_a_walsh_average_is_exact() -> None:
    rng = seeded(20)
    factors = [Fraction(a, b) for a in range(1, 7) for b in range(1, 7)]
    for _ in range(VECTORS):
        ratios = [rng.choice(factors) for _ in range(rng.randint(1, 9))]
        averages = WalshAverages.of([log_of(ratio) for ratio in ratios])
        for rank in range(1, len(averages.doubled) + 1):
            assert is_walsh_average_above_zero(ratios, rank) == (averages.at(rank) > 0)
    barely = Fraction(10**18 + 1, 10**18)
    assert is_walsh_average_above_zero([barely], 1)
    assert not is_walsh_average_above_zero([1 / barely], 1)


@pytest.mark.parametrize("size", [10**17, 10**400])
def test_ratios_that_no_float_holds_are_ranked(size: int) -> None:
    vast, tiny = Fraction(size), Fraction(1, size)
    assert is_walsh_average_above_zero([vast] * 13, 18)
    assert not is_walsh_average_above_zero([tiny] * 13, 18)
    assert not is_walsh_average_above_zero([vast, tiny], 2)
    assert is_walsh_average_above_zero([vast + 1, tiny], 2)


def test_estimates_turn_around_exactly() -> None:
    rng = seeded(12)
    effects = [Fraction(rng.randint(-(10**12), 10**12), 10**9) for _ in range(13)]
    forth, back = WalshAverages.of(effects), WalshAverages.of([-one for one in effects])
    assert back.median() == -forth.median()
    there, here = forth.interval(AT_95), back.interval(AT_95)
    assert there is not None
    assert here is not None
    assert (here.lower, here.upper) == (-there.upper, -there.lower)


def test_zeros_and_ties_stay_in_where_scipy_drops_them() -> None:
    effects = [Fraction(0)] * 5 + [Fraction(1)] * 8
    assert len(WalshAverages.of(effects).doubled) == 91
    assert WalshAverages.of(effects).median() == Fraction(1, 2)
    assert WalshAverages.of([Fraction(0)] * 13).interval(AT_95) is not None
