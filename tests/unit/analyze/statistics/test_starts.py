"""The level of starts: effect, drift and bounds, and the figures of a campaign that was measured."""

import random
from fractions import Fraction

import numpy as np
import pytest

from labctl.analyze.statistics.logs import gain_of_log, log_of
from labctl.analyze.statistics.permutation import permute_starts
from labctl.analyze.statistics.starts import (
    deciding_fit,
    effect_p,
    effect_t,
    fit_with_drift,
    fit_without_drift,
    interval,
    lower_bound,
)
from labctl.prereg.model import Arm
from labctl.standalone import exact_statistics as standalone
from tests.fakes.seeded import seeded

A, B = Arm.CONTROL, Arm.CANDIDATE
ABBA = (A, B, B, A)
AT_95 = Fraction(95, 100)
MEASURED = tuple(map(Fraction, ("92.54961760665958", "94.92003934159611", "95.06654837534518", "92.87797142677606")))
"""Medians of A1, B1, B2, A2 in tokens/s, of a campaign whose record was approved."""


def test_the_measured_campaign_has_its_effect() -> None:
    fit = fit_without_drift([log_of(speed) for speed in MEASURED], ABBA)
    assert fit is not None
    assert gain_of_log(float(fit.effect)) == pytest.approx(2.459, abs=5e-4)


def test_the_measured_campaign_without_drift() -> None:
    fit = fit_without_drift(MEASURED, ABBA)
    assert fit is not None
    assert float(fit.effect) == pytest.approx(2.279, abs=1e-3)
    assert fit.start_sd == fit.error == pytest.approx(0.180, abs=5e-4)
    assert fit.degrees == 2
    assert effect_t(fit) == pytest.approx(12.7, abs=0.05)
    assert effect_p(fit) == pytest.approx(0.003, abs=2e-4)
    found = interval(fit, AT_95)
    assert (found.upper - found.lower) / 2 == pytest.approx(0.77, abs=5e-3)


def test_the_measured_campaign_with_its_drift_taken_out() -> None:
    fit = fit_with_drift(MEASURED, ABBA)
    assert fit is not None
    found = interval(fit, AT_95)
    assert (round(found.lower, 2), round(found.upper, 2)) == (1.96, 2.60)
    assert effect_p(fit) == pytest.approx(0.0035, abs=5e-5)
    assert fit.drift is not None
    by_hand = (3 * (MEASURED[3] - MEASURED[0]) + (MEASURED[2] - MEASURED[1])) / 10
    assert fit.drift == by_hand
    residual = -MEASURED[0] + 3 * MEASURED[1] - 3 * MEASURED[2] + MEASURED[3]
    assert fit.residual_squares == residual**2 / 20
    assert float(residual) / 20**0.5 == pytest.approx(-0.025, abs=5e-4)


def test_four_starts_cannot_have_a_smaller_permutation_p_than_a_sixth() -> None:
    assert permute_starts(MEASURED, ABBA).p_value == permute_starts(MEASURED, ABBA).floor == Fraction(1, 6)


def some_order(rng: random.Random) -> tuple[Arm, ...]:
    arms = [A, B, *(rng.choice((A, B)) for _ in range(rng.randint(2, 10)))]
    rng.shuffle(arms)
    return tuple(arms)


@pytest.mark.parametrize("has_drift", [False, True])
def test_fits_are_least_squares_and_both_analyzers_agree(has_drift: bool) -> None:
    rng = seeded(13)
    for _ in range(300):
        arms = some_order(rng)
        speeds = [Fraction(99 * 10**9, rng.randint(10**9, 2 * 10**9)) for _ in arms]
        logs = [log_of(speed) for speed in speeds]
        fit = (fit_with_drift if has_drift else fit_without_drift)(logs, arms)
        other = standalone.effect_of_starts(logs, "".join(arms), has_drift=has_drift)
        places = [[1, arm is B, *([place] if has_drift else [])] for place, arm in enumerate(arms)]
        matrix = np.array(places, dtype=float)
        if np.linalg.matrix_rank(matrix) < matrix.shape[1] or len(arms) <= matrix.shape[1]:
            continue
        expected, squares, *_ = np.linalg.lstsq(matrix, np.array([float(log) for log in logs]))
        assert fit is not None
        assert other is not None
        assert float(fit.effect) == pytest.approx(expected[1], rel=1e-9, abs=1e-12)
        assert float(fit.residual_squares) == pytest.approx(squares[0], rel=1e-7)
        assert (fit.effect, fit.degrees) == (other[0], other[2])
        assert fit.start_variance * fit.leverage == other[1]


def test_every_signed_number_turns_around_exactly_when_the_arms_are_swapped() -> None:
    rng = seeded(14)
    for _ in range(200):
        arms = some_order(rng)
        logs = [log_of(Fraction(rng.randint(1, 10**9), rng.randint(1, 10**9))) for _ in arms]
        swapped = tuple(A if arm is B else B for arm in arms)
        forth, back = deciding_fit(logs, arms), deciding_fit(logs, swapped)
        if forth is None or back is None:
            continue
        assert back.effect == -forth.effect
        assert (back.drift, back.error) == (forth.drift, forth.error)
        there, here = interval(forth, AT_95), interval(back, AT_95)
        assert (here.lower, here.upper) == (-there.upper, -there.lower)


def test_starts_that_do_not_vary_have_no_t_value() -> None:
    fit = fit_without_drift([Fraction(1), Fraction(2), Fraction(2), Fraction(1)], ABBA)
    assert fit is not None
    for undefined in (effect_t, effect_p):
        with pytest.raises(ValueError, match="do not vary"):
            undefined(fit)
    assert lower_bound(fit, AT_95) == 1


def test_a_p_value_is_never_zero() -> None:
    fit = fit_without_drift([Fraction(0), Fraction(10**30), Fraction(10**30) + Fraction(1, 10**25), Fraction(0)], ABBA)
    assert fit is not None
    assert 0 < effect_p(fit) < 1e-20


@pytest.mark.parametrize("arms", [(A, B), (A, A, A, A), (A, B, B)])
def test_too_few_starts_give_no_fit_with_drift(arms: tuple[Arm, ...]) -> None:
    values = [Fraction(number) for number in range(len(arms))]
    assert fit_with_drift(values, arms) is None
    assert standalone.effect_of_starts(values, "".join(arms), has_drift=True) is None


def test_bounds_leave_the_drift_out_up_to_four_starts_only() -> None:
    values = [Fraction(number**2) for number in range(8)]
    assert deciding_fit(values[:4], ABBA) == fit_without_drift(values[:4], ABBA)
    arms = (*ABBA, B, A, A, B)
    assert deciding_fit(values, arms) == fit_with_drift(values, arms)


def test_eight_starts_cancel_a_drift_of_second_degree_and_four_do_not() -> None:
    arms = (*ABBA, B, A, A, B)
    curve = [Fraction((2 * place - 7) ** 2, 1000) for place in range(8)]
    fit = fit_with_drift(curve, arms)
    assert fit is not None
    assert fit.effect == 0
    short = fit_with_drift([Fraction((2 * place - 3) ** 2, 1000) for place in range(4)], ABBA)
    assert short is not None
    assert short.effect != 0
