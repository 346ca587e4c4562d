import hashlib
from pathlib import Path

import pytest

from labctl.prereg.campaign_files import load_campaign
from labctl.prereg.designs import Design, Mirror, design_limits, drawn_order, is_balanced, mirrored, order_of
from labctl.standalone import start_order

GOOD = Path(__file__).parents[2] / "fixtures" / "prereg" / "good"
ABBA = ("A1", "B1", "B2", "A2")


def test_a_design_is_a_numbered_order() -> None:
    assert order_of(Design.ABBA) == ABBA
    assert order_of(Design.ABBABAAB) == ("A1", "B1", "B2", "A2", "B3", "A3", "A4", "B4")


def test_a_mirror_swaps_the_arms_and_nothing_else() -> None:
    assert mirrored(ABBA) == ("B1", "A1", "A2", "B2")
    assert mirrored(mirrored(ABBA)) == ABBA


@pytest.mark.parametrize("design", Design)
def test_every_design_cancels_a_linear_drift_and_the_longer_ones_a_quadratic_one(design: Design) -> None:
    assert is_balanced(order_of(design), 1)
    assert is_balanced(order_of(design), 2) is (design is not Design.ABBA)


def test_the_coin_is_fair_and_falls_the_same_way_for_the_same_nonce() -> None:
    drawn = [drawn_order(ABBA, Mirror.SEALED_COIN, f"{number:032x}") for number in range(4000)]
    assert set(drawn) == {ABBA, mirrored(ABBA)}
    assert 1850 < drawn.count(ABBA) < 2150
    assert drawn[:50] == [drawn_order(ABBA, Mirror.SEALED_COIN, f"{number:032x}") for number in range(50)]


def test_the_coin_is_the_last_bit_of_the_published_digest_for_both_analyzers() -> None:
    schedule = {"order": list(ABBA), "mirror": "sealed_coin"}
    for number in range(200):
        nonce = f"{number:032x}"
        is_mirror = hashlib.sha256(f"{nonce}:order".encode()).digest()[-1] & 1
        expected = ("B1", "A1", "A2", "B2") if is_mirror else ABBA
        assert drawn_order(ABBA, Mirror.SEALED_COIN, nonce) == expected
        assert tuple(start_order.drawn_order({"schedule": schedule}, {"nonce": nonce})) == expected


def test_without_a_coin_the_order_is_the_registered_one_whatever_the_nonce() -> None:
    assert {drawn_order(ABBA, None, f"{number:032x}") for number in range(50)} == {ABBA}


def test_four_starts_cannot_separate_a_quadratic_drift_and_eight_can() -> None:
    (four,) = design_limits(ABBA)
    assert "quadratic" in four
    assert "linear" not in four
    assert "1/6" in four
    assert design_limits(order_of(Design.ABBABAAB)) == ()


def test_a_single_pair_cannot_separate_a_linear_drift_either() -> None:
    (pair,) = design_limits(("A1", "B1"))
    assert "linear in time" in pair
    assert "1/2" in pair


def test_one_arm_has_nothing_to_separate() -> None:
    assert design_limits(("A1", "A2")) == ()


def test_a_coin_is_named_as_the_weak_randomisation_that_it_is() -> None:
    (line,) = design_limits(order_of(Design.ABBABAAB), Mirror.SEALED_COIN)
    assert "1/2" in line


def test_a_file_that_names_a_design_has_its_order_written_out() -> None:
    schedule = load_campaign(GOOD / "mirrored.yaml").preregistration.model.schedule
    assert schedule.order == order_of(Design.ABBABAAB)
    assert schedule.mirror is Mirror.SEALED_COIN


def test_an_order_without_design_or_mirror_keeps_its_canonical_form() -> None:
    schedule = load_campaign(GOOD / "record.yaml").preregistration.model.schedule
    assert schedule.model_dump(mode="json").keys() == {"order", "stop_after_first_pair", "wait_s"}
