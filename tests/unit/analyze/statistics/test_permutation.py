"""Permutation of the arms over starts: exact counts, for the draw that was made."""

from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest
from scipy import stats

from labctl.analyze.statistics.logs import log_of
from labctl.analyze.statistics.permutation import permute_over, permute_starts
from labctl.prereg.model import Arm
from labctl.standalone import exact_statistics as standalone
from tests.fakes.seeded import seeded

A, B = Arm.CONTROL, Arm.CANDIDATE
MORE_THAN_ALL = 2**20
"""So many resamples make scipy count every assignment."""


def arms_of(text: str) -> tuple[Arm, ...]:
    return tuple(Arm(letter) for letter in text)


def mean_difference(candidates: np.ndarray, controls: np.ndarray) -> float:
    return float(np.mean(candidates) - np.mean(controls))


def by_hand(speeds: list[Fraction], arms: tuple[Arm, ...]) -> int:
    chosen = [place for place, arm in enumerate(arms) if arm is B]
    observed = prod((speeds[place] for place in chosen), start=Fraction(1))
    every = combinations(speeds, len(chosen))
    return sum(prod(one, start=Fraction(1)) >= observed for one in every)


@pytest.mark.parametrize(("r", "floor"), [(2, 0.167), (3, 0.05), (4, 0.0143), (5, 0.004)])
def test_the_floor_of_complete_randomisation(r: int, floor: float) -> None:
    speeds = [Fraction(number + 1) for number in range(2 * r)]
    found = permute_starts(speeds, (A,) * r + (B,) * r)
    assert (found.count, found.total) == (1, comb(2 * r, r))
    assert float(found.p_value) == pytest.approx(floor, abs=5e-4)


def test_counts_are_scipys_on_random_starts() -> None:
    rng = seeded(15)
    for _ in range(1000):
        arms = arms_of(rng.choice(("ABBA", "ABBAAB", "ABBABAAB", "AABBB")))
        speeds = [Fraction(99 * 10**9, rng.randint(10**9, 2 * 10**9)) for _ in arms]
        logs = [[float(log_of(v)) for v, arm in zip(speeds, arms, strict=True) if arm is side] for side in (B, A)]
        tested = stats.permutation_test(
            logs, mean_difference, n_resamples=MORE_THAN_ALL, alternative="greater", vectorized=False
        )
        found = permute_starts(speeds, arms)
        assert found.count == round(float(tested.pvalue) * found.total)
        assert standalone.assignment_count(speeds, "".join(arms)) == found.count


def test_equal_starts_are_ties_and_count() -> None:
    rng = seeded(16)
    for _ in range(200):
        arms = arms_of(rng.choice(("ABBA", "ABBABAAB", "AABBB")))
        speeds = [Fraction(rng.choice((2, 3, 4, 6, 12)), rng.choice((1, 2, 3))) for _ in arms]
        assert permute_starts(speeds, arms).count == by_hand(speeds, arms)
        assert standalone.assignment_count(speeds, "".join(arms)) == by_hand(speeds, arms)
    assert permute_starts([Fraction(5)] * 4, arms_of("ABBA")).p_value == 1


def test_as_many_starts_as_a_schedule_may_have_are_counted() -> None:
    rng = seeded(17)
    speeds = [Fraction(rng.randint(10**9, 2 * 10**9), 10**9) for _ in range(24)]
    arms = arms_of("ABBABAABBAABABBAABBABAAB")
    found = permute_starts(speeds, arms)
    assert found.total == comb(24, 12)
    assert found.count == standalone.assignment_count(speeds, "".join(arms))


def test_a_coin_between_two_mirrors_has_two_assignments() -> None:
    speeds = [Fraction(number) for number in (100, 102, 103, 100)]
    both = (arms_of("ABBA"), arms_of("BAAB"))
    assert permute_over(speeds, both[0], both).p_value == Fraction(1, 2)
    assert permute_over(speeds, both[1], both).p_value == 1


def test_an_assignment_that_was_not_drawn_from_is_refused() -> None:
    with pytest.raises(ValueError, match="assignments"):
        permute_over([Fraction(1)] * 4, arms_of("ABAB"), (arms_of("ABBA"), arms_of("BAAB")))
