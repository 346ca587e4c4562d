"""Memory of watched cards is looked at before a start and after its stop, and written down."""

from pathlib import Path

from labctl.leg.device_memory import device_memory_left, used_device_memory
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.leg import DeviceMemory
from tests.fakes.leg import LegPlace, run
from tests.fakes.xpu_smi import FakeMachine, four_cards, install

INTEL = Cards(vendor=CardVendor.INTEL, count=2, identities="discover")


def watching(folder: Path, machine: FakeMachine | None = None, cards: Cards = INTEL) -> dict[str, object]:
    """What an order says of the cards."""
    program = install(folder / "tool", four_cards() if machine is None else machine)
    return {"cards": cards, "devices": Devices(xpu_smi=str(program), timeout_s=20)}


def test_a_leg_writes_down_the_memory_of_each_watched_card(place: LegPlace, tmp_path: Path) -> None:
    status, errors = run(place, **watching(tmp_path))
    assert (status, errors) == (0, "")
    left = place.postflight().device_memory
    assert [card.identity for card in left] == [card.uuid for card in four_cards().cards[:2]]
    assert all(card.after_bytes == card.before_bytes >= 0 for card in left)


def test_named_cards_are_the_ones_that_are_watched(place: LegPlace, tmp_path: Path) -> None:
    third = four_cards().cards[2].uuid
    cards = Cards(vendor=CardVendor.INTEL, count=1, identities=(third,))
    assert set(used_device_memory(place.order(**watching(tmp_path, cards=cards)))) == {third}


def test_a_card_whose_memory_is_not_told_has_no_record(place: LegPlace) -> None:
    cpus = Cards(vendor=CardVendor.CPU, count=1, identities="discover")
    assert used_device_memory(place.order(cards=cpus)) == {}
    assert used_device_memory(place.order()) == {}


def test_a_tool_that_does_not_answer_leaves_no_record(place: LegPlace, tmp_path: Path) -> None:
    missing = {"cards": INTEL, "devices": Devices(xpu_smi=str(tmp_path / "nowhere"))}
    assert used_device_memory(place.order(**missing)) == {}


def test_a_card_that_was_seen_once_has_no_difference() -> None:
    assert device_memory_left({"a": 1, "b": 2}, {"b": 5, "c": 6}) == (
        DeviceMemory(identity="b", before_bytes=2, after_bytes=5),
    )
