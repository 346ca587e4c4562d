"""The idle gate for cards, with processes and programs that behave as the real ones."""

import os
from dataclasses import replace
from pathlib import Path

from labctl.campaign.card_checks import card_looks, watched_cards
from labctl.campaign.checks import every_look
from labctl.campaign.look import Look
from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.host.devices.discovery import reader_of
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from tests.fakes.lab_repository import LabRepository
from tests.fakes.packets import make_packet
from tests.fakes.xpu_smi import FakeMachine, four_cards, install
from tests.faults.before_marker import preflight_request

FIRST = "00000000-0000-0023-0000-0000e2238086"
THIRD = "00000000-0000-0043-0000-0000e2238086"
INTEL = Cards(vendor=CardVendor.INTEL, count=2, identities=(FIRST, THIRD))


def looks(folder: Path, machine: FakeMachine) -> list[Look]:
    devices = Devices(xpu_smi=str(install(folder, machine)))
    return list(card_looks(reader_of(INTEL, devices), INTEL, devices, SystemClock()))


def test_selected_cards_that_nobody_uses_pass(tmp_path: Path) -> None:
    (look,) = looks(tmp_path, four_cards())
    assert (look.name, look.is_met, look.observed) == ("cards", True, f"{FIRST}, {THIRD}")


def test_a_selected_card_that_another_process_uses_is_refused(tmp_path: Path) -> None:
    busy = replace(four_cards(), clients=((2, os.getpid(), "python3", 9), (1, os.getpid(), "python3", 9)))
    (look,) = looks(tmp_path, busy)
    assert (look.code, look.is_met, look.name) == (Code.HOST_BUSY, False, f"cards.free card {THIRD}")


def test_a_missing_card_is_refused(tmp_path: Path) -> None:
    (look,) = looks(tmp_path, replace(four_cards(), cards=four_cards().cards[:2]))
    assert (look.code, look.is_met) == (Code.WRONG_CARD, False)
    assert look.name == f"cards {THIRD}"


def test_servers_start_only_where_the_cards_of_the_host_profile_are_free(tmp_path: Path) -> None:
    program = install(tmp_path / "bin", replace(four_cards(), clients=((0, 4242, "python3", 9),)))
    devices = {"xpu_smi": str(program), "idle_cards": INTEL.model_dump(mode="json")}
    request = preflight_request(LabRepository.create(tmp_path / "lab"), host={"devices": devices})
    (look,) = (look for look in every_look(request) if look.name.startswith("cards"))
    assert (look.code, look.observed) == (Code.HOST_BUSY, "python3 (4242)")
    install(tmp_path / "bin", four_cards())
    assert [look.is_met for look in every_look(request) if look.name == "cards"] == [True, True]


def test_an_endpoint_campaign_watches_no_card_unless_the_host_profile_says_so() -> None:
    packet = make_packet()
    assert watched_cards(packet.preregistration, packet.host) is None
