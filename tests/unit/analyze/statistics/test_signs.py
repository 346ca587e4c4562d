"""Sign tests and sign flips: equal to scipy where that is right, and right where it is not."""

import random
import warnings
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from scipy import stats

from labctl.analyze.statistics.logs import log_of
from labctl.analyze.statistics.signs import MOST_FLIPPED_ROWS, sign_flips, sign_test_p
from labctl.standalone import exact_statistics as standalone
from tests.fakes.seeded import seeded

VECTORS = 1000
MORE_THAN_ALL = 2**20
"""So many resamples make scipy count every flip."""


def some_ratios(rng: random.Random, rows: int) -> list[Fraction]:
    """What four rows of rates a prompt give: products of integer nanoseconds."""
    ns = [rng.randint(900_000_000, 1_100_000_000) for _ in range(4 * rows)]
    return [Fraction(ns[at] * ns[at + 1], ns[at + 2] * ns[at + 3]) for at in range(0, 4 * rows, 4)]


def counted_by_hand(ratios: list[Fraction]) -> int:
    return sum(
        prod((ratio for ratio, is_flipped in zip(ratios, flips, strict=True) if is_flipped), start=Fraction(1)) <= 1
        for flips in product((False, True), repeat=len(ratios))
    )


def test_the_sign_test_is_scipys_on_random_counts() -> None:
    rng = seeded(6)
    for _ in range(VECTORS):
        rows = rng.randint(1, 40)
        wins = rng.randint(0, rows)
        expected = stats.binomtest(wins, rows, 0.5, alternative="greater").pvalue
        for found in (sign_test_p(wins, rows), standalone.sign_test_p(wins, rows)):
            assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("wins", "p"), [(13, "0.000122"), (12, "0.0017"), (11, "0.0112"), (10, "0.0461")])
def test_the_sign_test_of_thirteen_rows(wins: int, p: str) -> None:
    assert f"{float(sign_test_p(wins, 13)):.{len(p) - 2}f}" == p


def test_no_row_is_refused() -> None:
    for wins, rows in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="rows"):
            sign_test_p(wins, rows)
    assert sign_flips([]) is None
    assert standalone.sign_flip_count([]) is None


def test_sign_flips_are_scipys_on_random_vectors() -> None:
    rng = seeded(7)
    for _ in range(VECTORS):
        ratios = some_ratios(rng, rng.randint(2, 8))
        effects = np.array([float(log_of(ratio)) for ratio in ratios])
        tested = stats.permutation_test(
            (effects,),
            np.mean,
            permutation_type="samples",
            n_resamples=MORE_THAN_ALL,
            alternative="greater",
            vectorized=True,
        )
        found = sign_flips(ratios)
        assert found is not None
        assert (found.count, found.total) == (round(float(tested.pvalue) * found.total), 2 ** len(ratios))
        assert standalone.sign_flip_count(ratios) == found.count


def test_all_flips_of_thirteen_rows_are_counted() -> None:
    ratios = some_ratios(seeded(8), 13)
    found = sign_flips(ratios)
    assert found is not None
    assert found.total == 8192
    assert found.count == counted_by_hand(ratios) == standalone.sign_flip_count(ratios)


def test_ties_of_products_are_counted_although_their_logs_round_apart() -> None:
    rng = seeded(9)
    factors = [Fraction(1), *(Fraction(a, b) for a in (2, 3, 7) for b in (5, 6, 7) if a != b)]
    for _ in range(200):
        ratios = [rng.choice(factors) for _ in range(rng.randint(1, 8))]
        found = sign_flips(ratios)
        assert found is not None
        assert found.count == counted_by_hand(ratios) == standalone.sign_flip_count(ratios)


def test_a_tie_that_floats_break_is_a_tie() -> None:
    # 1.1 * 1.2 / 1.32 is 1, but the sum of the three logs is 1e-16 off: which sign that has is rounding, not evidence.
    ratios = [Fraction(11, 10), Fraction(12, 10), Fraction(100, 132)]
    assert sum(np.log([float(ratio) for ratio in ratios])) != 0
    found = sign_flips(ratios)
    assert found is not None
    assert found.count == counted_by_hand(ratios)


def test_no_difference_at_all_is_no_evidence_where_scipy_warns() -> None:
    found = sign_flips([Fraction(1)] * 13)
    assert found is not None
    assert found.p_value == sign_test_p(0, 13) == 1
    assert standalone.sign_flip_count([Fraction(1)] * 13) == 8192
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stats.wilcoxon(np.zeros(14), method="approx")
    assert caught


def test_a_constant_effect_has_the_smallest_p_and_not_scipys_zero() -> None:
    found = sign_flips([Fraction(51, 50)] * 13)
    assert found is not None
    assert found.p_value == Fraction(1, 8192)
    with pytest.warns(RuntimeWarning):
        assert stats.ttest_rel([1.0] * 13, [0.5] * 13).pvalue == 0


def test_an_effect_in_the_wrong_direction_is_no_evidence() -> None:
    found = sign_flips([Fraction(49, 50)] * 13)
    assert found is not None
    assert found.p_value == 1


def test_more_rows_than_can_be_counted_are_not_sampled() -> None:
    assert sign_flips([Fraction(2)] * (MOST_FLIPPED_ROWS + 1)) is None
    assert standalone.sign_flip_count([Fraction(2)] * (MOST_FLIPPED_ROWS + 1)) is None
