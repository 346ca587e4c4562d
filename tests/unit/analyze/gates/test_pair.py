import pytest

from labctl.analyze.gates.pair import judge_pair
from labctl.analyze.pairs import overall_gain_percent, pair_effects
from labctl.prereg.field_types import MetricId
from labctl.prereg.gate_kinds import Pair
from labctl.records.verdict import GateResult
from tests.fakes.speeds import Speeds, evidence_with_speeds

FULL = MetricId.DECODE_RATE_FULL


def pair_gate(wins: int = 2, gain: str = "25", paired: str | None = None) -> Pair:
    return Pair(
        kind="pair",
        metric=FULL,
        min_row_wins=wins,
        min_headline_gain_percent=gain,
        min_median_paired_gain_percent=paired,
    )


@pytest.mark.parametrize(
    ("control", "candidate", "gate", "result"),
    [
        (100, 125, pair_gate(), GateResult.PASSED),
        (100, 125, pair_gate(gain="25.0000000001"), GateResult.FAILED),
        (100, 125, pair_gate(wins=3), GateResult.FAILED),
        ([100, 200], [125, 200], pair_gate(gain="0"), GateResult.FAILED),
        ([100, 200], [125, 200], pair_gate(wins=1, gain="0"), GateResult.PASSED),
        ([100, 100], [125, None], pair_gate(wins=1, gain="0"), GateResult.FAILED),
        ([100, None], 125, pair_gate(), GateResult.NOT_EVALUATED),
        (125, 100, pair_gate(wins=1, gain="-50"), GateResult.FAILED),
        (100, 125, pair_gate(paired="25"), GateResult.PASSED),
        (100, 125, pair_gate(paired="26"), GateResult.FAILED),
    ],
)
def test_a_pair_is_judged_by_wins_and_exact_gains(
    control: Speeds, candidate: Speeds, gate: Pair, result: GateResult
) -> None:
    assert judge_pair(evidence_with_speeds(A1=control, B1=candidate), gate).result is result


def test_a_tie_is_a_loss() -> None:
    (effect,) = pair_effects(evidence_with_speeds(A1=[100, 100, 100], B1=[100, 125, 80]), FULL)
    assert (effect.wins, effect.rows) == (1, 3)


def test_a_row_that_is_missing_is_a_loss_for_the_candidate_and_no_basis_for_the_control() -> None:
    (effect,) = pair_effects(evidence_with_speeds(A1=[100, 100], B1=[125]), FULL)
    assert (effect.wins, effect.rows, effect.has_invalid_control, effect.median_paired_gain_percent) == (
        1,
        2,
        False,
        None,
    )
    (effect,) = pair_effects(evidence_with_speeds(A1=[100], B1=[125, 125]), FULL)
    assert effect.has_invalid_control


def test_the_median_paired_gain_is_not_the_gain_of_the_medians() -> None:
    (effect,) = pair_effects(evidence_with_speeds(A1=[100, 200, 400], B1=[125, 200, 800]), FULL)
    assert effect.headline_gain_percent == 0
    assert effect.median_paired_gain_percent == 25


def test_pairs_are_neighbours_by_number_whatever_the_order() -> None:
    effects = pair_effects(evidence_with_speeds(A1=100, B1=125, B2=200, A2=100), FULL)
    gains = {one.name: str(one.headline_gain_percent) for one in effects}
    assert gains == {"B1 vs A1": "25", "B2 vs A2": "100"}


def test_no_pair_is_no_evidence() -> None:
    assert judge_pair(evidence_with_speeds(A1=100), pair_gate()).result is GateResult.NOT_EVALUATED


def test_the_overall_gain_needs_every_start() -> None:
    assert overall_gain_percent(evidence_with_speeds(A1=100, B1=200, B2=250, A2=200), FULL) == 50
    assert overall_gain_percent(evidence_with_speeds(A1=100, B1=[200, None]), FULL) is None
    assert overall_gain_percent(evidence_with_speeds(A1=100), FULL) is None


def test_swapping_the_arms_turns_every_gain_around() -> None:
    (forth,) = pair_effects(evidence_with_speeds(A1=[100, 125], B1=[200, 250]), FULL)
    (back,) = pair_effects(evidence_with_speeds(A1=[200, 250], B1=[100, 125]), FULL)
    assert forth.headline_gain_percent is not None
    assert back.headline_gain_percent is not None
    assert (1 + forth.headline_gain_percent / 100) * (1 + back.headline_gain_percent / 100) == 1
