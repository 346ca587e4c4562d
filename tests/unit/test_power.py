import math

import pytest

from labctl.power import minimum_effect_in_sds, power_of, sd_limits, starts_needed

TABLE = {
    2: (3.98, 8.96, 4.81),
    3: (2.48, 3.98, 2.94),
    4: (2.00, 2.92, 2.35),
    6: (1.54, 2.12, 1.82),
    8: (1.31, 1.76, 1.54),
}


@pytest.mark.parametrize(("starts", "effects"), TABLE.items())
def test_the_minimum_effect_is_that_of_the_table(starts: int, effects: tuple[float, ...]) -> None:
    asked = [(0.05, 0.8), (0.01, 0.8), (0.05, 0.9)]
    found = [minimum_effect_in_sds((starts, starts), alpha, power) for alpha, power in asked]
    assert found == pytest.approx(effects, abs=0.005)


def test_the_needed_starts_are_those_of_the_table() -> None:
    needed = [starts_needed(effect, 0.05, 0.8) for effect in (0.5, 1, 1.5, 2, 3, 5)]
    assert needed == [51, 14, 7, 4, 3, 2]


@pytest.mark.parametrize(("df", "low", "high"), [(2, 0.52, 6.3), (6, 0.64, 2.2), (12, 0.72, 1.65)])
def test_the_limits_of_an_sd_are_those_of_the_table(df: int, low: float, high: float) -> None:
    limits = sd_limits(1.0, df)
    assert (limits.lower, limits.upper) == pytest.approx((low, high), abs=0.02)
    assert limits.lower < limits.sd < limits.planning < limits.upper


def test_the_smallest_effect_is_found_just_as_often_as_asked() -> None:
    effect = minimum_effect_in_sds((4, 4), 0.05, 0.8)
    assert power_of(effect, (4, 4), 0.05) == pytest.approx(0.8, abs=1e-9)


def test_needed_starts_are_the_fewest_that_do() -> None:
    needed = starts_needed(1.0, 0.05, 0.8)
    assert needed is not None
    assert power_of(1.0, (needed, needed), 0.05) >= 0.8 > power_of(1.0, (needed - 1, needed - 1), 0.05)


def test_without_an_effect_the_error_rate_is_alpha() -> None:
    assert power_of(0.0, (4, 4), 0.05) == pytest.approx(0.05, abs=1e-9)


def test_one_start_an_arm_sees_nothing() -> None:
    assert power_of(100.0, (1, 1), 0.05) == 0.0
    assert minimum_effect_in_sds((1, 1), 0.05, 0.8) == math.inf


def test_no_effect_needs_more_starts_than_there_are() -> None:
    assert starts_needed(0.0, 0.05, 0.8) is None
    assert starts_needed(0.001, 0.05, 0.8) is None


@pytest.mark.parametrize("effect", [1e9, 1e15, math.inf])
def test_a_vast_effect_is_seen_for_sure_and_needs_two_starts(effect: float) -> None:
    assert power_of(effect, (2, 2), 0.05) == 1.0
    assert power_of(effect, (2000, 2000), 0.05) == 1.0
    assert starts_needed(effect, 0.05, 0.8) == 2
    assert power_of(effect, (2, 2), 1e-30) == 0.0  # 1 - alpha is 1, and its bound infinite


def test_a_chance_that_no_effect_has_needs_an_infinite_one() -> None:
    assert minimum_effect_in_sds((4, 4), 1e-30, 0.8) == math.inf
