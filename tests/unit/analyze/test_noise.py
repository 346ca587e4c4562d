import math
import random

import pytest

from labctl.analyze.noise import noise_of
from labctl.prereg.field_types import MetricId
from labctl.prereg.noise import percent_of_log
from tests.fakes.speeds import Speeds, evidence_with_speeds

FULL = MetricId.DECODE_RATE_FULL
NS = 10**9


def test_the_spread_between_starts_is_that_of_their_log_headlines() -> None:
    evidence = evidence_with_speeds(A1=[100, 100], A2=[125, 125], A3=[80, 80])
    noise = noise_of(evidence.legs, FULL)
    assert noise is not None
    logs = [math.log(100), math.log(125), math.log(80)]
    mean = sum(logs) / 3
    assert noise.start_sd == pytest.approx(math.sqrt(sum((one - mean) ** 2 for one in logs) / 2))
    assert [start.headline for start in noise.starts] == ["100", "125", "80"]
    assert noise.row_sd == pytest.approx(0, abs=1e-12)


def test_a_drift_is_the_slope_over_the_order() -> None:
    evidence = evidence_with_speeds(A1=[1000, 1000], A2=[1250, 1250], A3=[1600, 1600])
    noise = noise_of(evidence.legs, FULL)
    assert noise is not None
    assert noise.drift_per_start == pytest.approx(math.log(1.6) / 2)


def test_what_prompts_have_in_common_is_no_noise_of_rows() -> None:
    evidence = evidence_with_speeds(A1=[100, 200, 400], A2=[125, 250, 500])
    noise = noise_of(evidence.legs, FULL)
    assert noise is not None
    assert noise.row_sd == pytest.approx(0, abs=1e-12)
    assert noise.row_df == 2


def test_the_noise_of_rows_is_found_again() -> None:
    drawn = random.Random(7)  # noqa: S311 (a reproducible sample, no secret)
    starts: dict[str, Speeds] = {
        f"A{n}": [_divisor(1000 * math.exp(drawn.gauss(0, 0.02))) for _ in range(40)] for n in range(1, 9)
    }
    noise = noise_of(evidence_with_speeds(**starts).legs, FULL)
    assert noise is not None
    assert noise.row_sd == pytest.approx(0.02, rel=0.2)


def test_labels_mean_nothing_to_a_calibration() -> None:
    plain = noise_of(evidence_with_speeds(A1=[100, 100], A2=[125, 125]).legs, FULL)
    labelled = noise_of(evidence_with_speeds(A1=[100, 100], B1=[125, 125]).legs, FULL)
    assert plain is not None
    assert labelled is not None
    assert labelled.start_sd == plain.start_sd


def test_one_start_one_row_and_a_row_that_does_not_count_show_no_noise() -> None:
    assert noise_of(evidence_with_speeds(A1=[100, 100]).legs, FULL) is None
    assert noise_of(evidence_with_speeds(A1=[100], A2=[100]).legs, FULL) is None
    assert noise_of(evidence_with_speeds(A1=[100, None], A2=[100, 100]).legs, FULL) is None
    assert noise_of(evidence_with_speeds(A1=[100, 100], A2=[100, 100, 100]).legs, FULL) is None


def test_starts_that_are_all_equal_have_no_limits() -> None:
    noise = noise_of(evidence_with_speeds(A1=[100, 100], A2=[100, 100]).legs, FULL)
    assert noise is not None
    assert noise.limits is None
    assert {one.name for one in noise.figures()} == {
        "noise_starts", "noise_start_sd", "noise_row_sd", "noise_drift_per_start",
    }  # fmt: skip


def test_figures_are_percents() -> None:
    noise = noise_of(evidence_with_speeds(A1=[100, 100], A2=[125, 125]).legs, FULL)
    assert noise is not None
    told = {one.name: one.value for one in noise.figures()}
    assert told["noise_start_sd"] == percent_of_log(noise.start_sd)
    assert float(told["noise_start_sd_lower"]) < float(told["noise_start_sd"]) < float(told["noise_start_sd_planning"])


def _divisor(rate: float) -> int:
    """A rate near this one that divides 10^9, as the fake needs it."""
    return NS // round(NS / rate) if NS % round(NS / rate) else round(rate)
