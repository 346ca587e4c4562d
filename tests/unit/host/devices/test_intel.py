"""Intel cards, against a program that behaves as `xpu-smi` is known to behave."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import LegFailed, PreflightFailed
from labctl.host.devices.affinity import affinity_environment
from labctl.host.devices.discovery import discover, discover_filtered, reader_of, require_only, select
from labctl.host.devices.intel import IntelReader
from labctl.host.devices.occupancy import busy_problems, card_state
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Discovery, identity_from_torch
from tests.fakes.xpu_smi import FakeMachine, four_cards, install

FOUR = Cards(vendor=CardVendor.INTEL, count=4, identities="discover")
UUIDS = tuple(f"00000000-0000-00{bus}-0000-0000e2238086" for bus in ("23", "27", "43", "47"))


class Lab:
    """A machine with the program installed, and the steps of a campaign on it."""

    def __init__(self, folder: Path, machine: FakeMachine, timeout_s: int = 20) -> None:
        self.devices = Devices(xpu_smi=str(install(folder, machine)), timeout_s=timeout_s)
        self.reader = reader_of(FOUR, self.devices)

    def unfiltered(self) -> Discovery:
        return discover(self.reader, self.devices, SystemClock())

    def filtered(self, environment: dict[str, str]) -> Discovery:
        return discover_filtered(self.reader, environment, self.devices, SystemClock())


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "bin", four_cards())


def test_every_card_is_found_with_its_stable_names(lab: Lab) -> None:
    found = lab.unfiltered()
    assert tuple(card.identity for card in found.cards) == UUIDS
    assert [card.bus_id for card in found.cards] == ["0000:23:00.0", "0000:27:00.0", "0000:43:00.0", "0000:47:00.0"]
    assert [card.drm_node for card in found.cards] == [f"/dev/dri/card{node}" for node in (3, 4, 0, 2)]
    assert {card.name for card in found.cards} == {"Intel(R) Arc(TM) Pro B70 Graphics"}
    assert found.cards[0].memory_used_bytes == 34242297856 - 34206572544
    assert found.filtered_by == {}
    assert found.tool.version == "1.3.1.20250808"


def test_discovery_under_affinity_is_refused_before_the_tool_is_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZE_AFFINITY_MASK", "0")
    (Path(lab.devices.xpu_smi)).unlink()
    with pytest.raises(PreflightFailed, match="ZE_AFFINITY_MASK: expected no affinity before discovery, got '0'"):
        lab.unfiltered()


def test_each_card_alone_is_renumbered_and_still_itself(lab: Lab) -> None:
    for card in select(lab.unfiltered(), FOUR):
        filtered = lab.filtered(affinity_environment(card))
        assert [one.index for one in filtered.cards] == [0]
        assert require_only(filtered, card).identity == card.identity
        assert filtered.filtered_by == affinity_environment(card)


def test_another_card_than_the_selected_one_is_named_with_both_identities(lab: Lab) -> None:
    first, second, *_ = select(lab.unfiltered(), FOUR)
    with pytest.raises(LegFailed) as caught:
        require_only(lab.filtered(affinity_environment(second)), first)
    assert [problem.where.rpartition(" ")[2] for problem in caught.value.problems] == ["identity", "bus_id", "drm_node"]
    assert set(caught.value.codes) == {Code.WRONG_CARD}
    assert (caught.value.problems[0].expected, caught.value.problems[0].got) == UUIDS[:2]


def test_a_selector_that_contradicts_the_mask_leaves_no_card(lab: Lab) -> None:
    card = lab.unfiltered().cards[1]
    wrong = affinity_environment(card) | {"ONEAPI_DEVICE_SELECTOR": "level_zero:1"}
    with pytest.raises(LegFailed, match=f"expected {card.identity} alone, got none"):
        require_only(lab.filtered(wrong), card)


def test_a_mask_that_leaves_two_cards_is_refused(lab: Lab) -> None:
    card = lab.unfiltered().cards[1]
    with pytest.raises(LegFailed, match=f"got {UUIDS[1]}, {UUIDS[2]}"):
        require_only(lab.filtered({"ZE_AFFINITY_MASK": "1,2"}), card)


def test_an_unfiltered_index_in_a_filtered_look_is_refused(lab: Lab) -> None:
    card = lab.unfiltered().cards[2]
    alone = lab.filtered(affinity_environment(card))
    renumbered = Discovery.model_validate(alone.model_dump() | {"cards": (card.model_dump(),)})
    with pytest.raises(LegFailed, match="expected 0, as a card seen alone has, got 2"):
        require_only(renumbered, card)


@pytest.mark.parametrize(
    ("torch_text", "identity"),
    [
        ("868023e2-0000-0000-2300-000000000000", UUIDS[0]),
        ("868023e2-0000-0000-4700-000000000000", UUIDS[3]),
    ],
)
def test_torch_shows_the_same_uuid_with_its_bytes_reversed(torch_text: str, identity: str) -> None:
    assert identity_from_torch(CardVendor.INTEL, torch_text) == identity
    assert torch_text not in UUIDS


def test_the_observer_is_no_client_and_a_stranger_of_its_name_is_one(tmp_path: Path) -> None:
    lab = Lab(tmp_path, replace(four_cards(), clients=((2, 4242, "xpu-smi", 5),)))
    cards = lab.unfiltered().cards
    assert [[one.role for one in card.processes] for card in cards].count(["observer"]) == 3
    assert {one.role for one in cards[2].processes} == {"observer", "client"}
    (problem,) = busy_problems(cards, lab.devices)
    assert problem.code is Code.HOST_BUSY
    assert (problem.where, problem.got) == (f"card {UUIDS[2]}", "xpu-smi (4242)")


def test_cards_with_nothing_but_the_observer_are_free(lab: Lab) -> None:
    assert busy_problems(lab.unfiltered().cards, lab.devices) == ()


def test_memory_that_somebody_holds_is_busy_and_must_come_back(tmp_path: Path) -> None:
    quiet = four_cards()
    held = replace(quiet.cards[0], free_bytes=str(34206572544 - (2 << 30)))
    before = Lab(tmp_path / "before", quiet).unfiltered().cards[0]
    lab = Lab(tmp_path / "after", replace(quiet, cards=(held, *quiet.cards[1:])))
    after = lab.unfiltered().cards[0]
    assert [problem.code for problem in busy_problems((after,), lab.devices)] == [Code.HOST_BUSY]
    assert card_state(before, after, lab.devices).problems == ("2048 MiB more in use than before, 64 MiB allowed",)
    assert card_state(after, before, lab.devices).problems == ()


def test_memory_that_is_not_told_is_null_and_not_zero(tmp_path: Path) -> None:
    quiet = four_cards()
    unknown = replace(quiet, cards=tuple(replace(card, free_bytes="N/A") for card in quiet.cards))
    assert Lab(tmp_path, unknown).unfiltered().cards[0].memory_used_bytes is None


def test_a_tool_that_hangs_is_given_up_and_killed(tmp_path: Path) -> None:
    lab = Lab(tmp_path, replace(four_cards(), hangs_in="ps"), timeout_s=1)
    started = time.monotonic()
    with pytest.raises(PreflightFailed, match=r"ps -j`: expected an answer, got no end after 1 s, so it was killed"):
        lab.unfiltered()
    assert time.monotonic() - started < 10
    assert not [place for place in Path("/proc").glob("[0-9]*") if _runs(place, lab.devices.xpu_smi)]


def _runs(place: Path, program: str) -> bool:
    try:
        return program.encode() in (place / "cmdline").read_bytes()
    except OSError:
        return False


def test_version_2_of_the_tool_is_understood_alike(tmp_path: Path) -> None:
    old = Lab(tmp_path / "1", four_cards()).unfiltered().cards
    new = Lab(tmp_path / "2", replace(four_cards(), version=2)).unfiltered().cards
    pairs = list(zip(old, new, strict=True))
    assert [list(one.same_card_conflicts(two)) for one, two in pairs] == [[]] * 4


def test_a_uuid_that_names_two_cards_is_a_problem(tmp_path: Path) -> None:
    twins = tuple(replace(card, uuid="00000000-0000-0000-0000-020a00008086") for card in four_cards().cards)
    found = Lab(tmp_path, replace(four_cards(), cards=twins)).unfiltered()
    assert len(found.problems) == 4
    with pytest.raises(PreflightFailed, match="names more than one card"):
        select(found, FOUR)


def test_the_words_of_the_tool_are_kept(lab: Lab) -> None:
    found = lab.unfiltered()
    asked = [answer.argv[1:] for answer in found.answers]
    details = [("discovery", "-d", str(number), "-j") for number in range(4)]
    assert asked == [("-v",), ("discovery", "-j"), *details, ("ps", "-j")]
    said = json.loads(found.answers[1].stdout)["device_list"]
    assert [entry["uuid"] for entry in said] == list(UUIDS)
    assert Discovery.from_json(found.canonical(), "devices.json") == found


@pytest.mark.parametrize(
    ("question", "words", "complaint"),
    [
        ("discovery -j", "no devices", "expected JSON"),
        ("discovery -j", '{"device_list": {}}', "device_list: expected a list, got {}"),
        ("discovery -j", '{"device_list": [{"device_id": "0"}]}', "uuid: expected text, got None"),
        ("discovery -d 0 -j", '{"driver_version": "1"}', "memory_physical_size_byte: expected a number"),
        ("ps -j", '{"error": "Fail to open", "errno": 3}', "expected an answer with exit status 0, got Fail to open"),
        ("ps -j", '{"device_util_by_proc_list": [7]}', "expected a mapping, got 7"),
    ],
)
def test_an_answer_of_another_form_is_refused_with_what_was_said(
    tmp_path: Path, question: str, words: str, complaint: str
) -> None:
    lab = Lab(tmp_path, replace(four_cards(), raw={question: words}))
    with pytest.raises(PreflightFailed, match=complaint):
        lab.unfiltered()


def test_a_missing_tool_says_where_to_name_it(tmp_path: Path) -> None:
    reader = IntelReader(tmp_path / "xpu-smi", 1)
    with pytest.raises(PreflightFailed, match="expected a tool that starts, got No such file or directory; install it"):
        discover(reader, Devices(), SystemClock())


def test_listed_identities_set_the_order_of_the_legs(lab: Lab) -> None:
    wanted = Cards(vendor=CardVendor.INTEL, count=2, identities=(UUIDS[3], UUIDS[0]))
    assert [card.identity for card in select(lab.unfiltered(), wanted)] == [UUIDS[3], UUIDS[0]]


def test_a_listed_card_that_is_not_there_is_named(lab: Lab) -> None:
    wanted = Cards(vendor=CardVendor.INTEL, count=2, identities=(UUIDS[0], "00000000-dead"))
    with pytest.raises(PreflightFailed, match="cards: 00000000-dead: expected this card, once"):
        select(lab.unfiltered(), wanted)


def test_fewer_cards_than_wanted_are_refused(lab: Lab) -> None:
    wanted = Cards(vendor=CardVendor.INTEL, count=5, identities="discover")
    with pytest.raises(PreflightFailed, match=f"expected 5 intel cards, got {UUIDS[0]}"):
        select(lab.unfiltered(), wanted)
