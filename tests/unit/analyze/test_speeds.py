"""The speeds of a run: what lacks is said, what does not count is a loss or no basis, and rows are paired by prompt."""

from dataclasses import replace
from fractions import Fraction

from labctl.analyze.speeds import RunSpeeds, run_speeds
from labctl.prereg.field_types import MetricId
from tests.fakes.speeds import Speeds, evidence_with_speeds

FULL = MetricId.DECODE_RATE_FULL


def speeds_of(**speeds: Speeds) -> RunSpeeds:
    return run_speeds(evidence_with_speeds(**speeds), FULL)


def test_a_tie_is_a_loss_and_so_is_a_candidate_row_that_does_not_count() -> None:
    (pair,) = speeds_of(A1=[100, 100, 100, 100], B1=[125, 100, 80, None]).pairs()
    assert (pair.name, pair.wins, pair.rows) == ("B1 vs A1", 1, 4)


def test_a_row_that_is_missing_is_a_loss() -> None:
    (pair,) = speeds_of(A1=[100, 100], B1=[125]).pairs()
    assert (pair.wins, pair.rows) == (1, 2)


def test_a_start_with_a_row_that_does_not_count_has_no_headline() -> None:
    speeds = speeds_of(A1=[100, None], B1=125)
    assert speeds.headlines() is None
    assert speeds.row_effects() is None
    assert [*speeds.gaps()] == ["A1: a row has no decode_rate_full"]


def test_starts_that_are_not_there_are_named() -> None:
    evidence = evidence_with_speeds(A1=100, B1=125, B2=125, A2=100)
    speeds = run_speeds(replace(evidence, legs=evidence.legs[:2]), FULL)
    assert [*speeds.gaps()] == ["2 of 4 starts are not there: B2, A2"]
    assert [*speeds_of(A1=100, A2=100).gaps()] == ["no start of arm B"]


def test_an_effect_of_a_row_is_that_of_one_prompt_over_all_starts() -> None:
    effects = speeds_of(A1=[100, 200], B1=[125, 200], B2=[160, 250], A2=[100, 250]).row_effects()
    assert effects is not None
    assert [(one.ratio, one.divisor) for one in effects] == [(Fraction(2), 2), (Fraction(1), 2)]
    assert effects[1].log == 0


def test_arms_of_different_size_weigh_alike() -> None:
    effects = speeds_of(A1=[100], B1=[200], A2=[400]).row_effects()
    assert effects is not None
    assert [(one.ratio, one.divisor) for one in effects] == [(Fraction(1), 2)]


def test_starts_with_different_numbers_of_rows_have_no_row_effects() -> None:
    assert speeds_of(A1=[100, 100], B1=[125]).row_effects() is None


def test_no_row_is_no_headline() -> None:
    assert speeds_of(A1=[], B1=[]).headlines() is None
