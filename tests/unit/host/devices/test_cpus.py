"""Sets of CPUs as cards, with the real kernel; whatever binds a process happens in a child."""

import os
import subprocess
import sys

import pytest

from labctl.clock import SystemClock
from labctl.errors import LegFailed, PreflightFailed
from labctl.host.devices.affinity import affinity_environment, allowed_cpus, cpus_of_text, text_of_cpus
from labctl.host.devices.cpus import CpuReader, _divided
from labctl.host.devices.discovery import discover, require_only, select
from labctl.host.devices.occupancy import busy_problems, card_state
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card, Discovery, identity_from_torch

DEVICES = Devices()
LEG = """
import os, sys
from labctl.clock import SystemClock
from labctl.host.devices.affinity import apply_affinity
from labctl.host.devices.discovery import discover_filtered
from labctl.host.devices.cpus import CpuReader
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card
apply_affinity(Card.from_json(sys.stdin.buffer.read(), "card"))
sys.stdout.buffer.write(discover_filtered(CpuReader(1), os.environ, Devices(), SystemClock()).canonical())
"""


def unfiltered(count: int, identities: tuple[str, ...] = ()) -> Discovery:
    return discover(CpuReader(count, identities), DEVICES, SystemClock())


def seen_in_a_leg(card: Card) -> Discovery:
    """What a process sees after it bound itself to the card."""
    child = subprocess.run([sys.executable, "-c", LEG], input=card.canonical(), capture_output=True, check=True)
    return Discovery.from_json(child.stdout, "discovery.json")


@pytest.mark.parametrize(
    ("allowed", "count", "names"),
    [
        ([0, 1, 2, 3], 2, ["cpu:0-1", "cpu:2-3"]),
        ([0, 1, 2, 3, 4], 2, ["cpu:0-1", "cpu:2-3"]),
        ([0, 2, 4, 5], 2, ["cpu:0,2", "cpu:4-5"]),
        ([0, 1], 4, ["cpu:0/1of2", "cpu:1/1of2", "cpu:0/2of2", "cpu:1/2of2"]),
        ([3, 7], 3, ["cpu:3/1of2", "cpu:7", "cpu:3/2of2"]),
    ],
)
def test_cpus_are_divided_into_cards_of_one_size_or_shared(allowed: list[int], count: int, names: list[str]) -> None:
    assert list(_divided(allowed, count)) == names
    assert len(set(names)) == count


@pytest.mark.parametrize("text", ["0", "0-3", "0,2-3,8", "1,3,5"])
def test_a_set_of_cpus_is_written_as_the_kernel_writes_it(text: str) -> None:
    assert text_of_cpus(cpus_of_text(text)) == text


def test_every_card_has_a_name_of_its_own_and_sharing_is_said() -> None:
    count = len(allowed_cpus()) + 1
    found = unfiltered(count)
    assert len({card.identity for card in found.cards}) == count
    assert found.remarks[0].startswith(f"{count} cards on {count - 1} CPUs: cards share CPUs ")
    assert found.problems == ()


def test_a_leg_sees_exactly_the_cpus_of_its_card() -> None:
    cards = select(unfiltered(2), Cards(vendor=CardVendor.CPU, count=2, identities="discover"))
    for card in cards:
        filtered = seen_in_a_leg(card)
        assert require_only(filtered, card).bus_id == card.bus_id
    if cards[0].bus_id != cards[1].bus_id:
        with pytest.raises(LegFailed, match="bus_id"):
            require_only(seen_in_a_leg(cards[1]), cards[0])


def test_a_leg_that_is_not_bound_is_refused() -> None:
    if len(allowed_cpus()) < 2:
        pytest.skip("one CPU cannot be told from all")
    card = unfiltered(len(allowed_cpus())).cards[0]
    everything = unfiltered(1)
    with pytest.raises(LegFailed, match="bus_id"):
        require_only(everything, card)


def test_a_process_bound_by_somebody_is_refused_before_the_marker() -> None:
    if len(allowed_cpus()) < 2:
        pytest.skip("one CPU cannot be told from all")
    bound = LEG.replace("apply_affinity(Card", "card = (Card").rpartition("sys.stdout")[0]
    bound += "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    bound += "from labctl.host.devices.discovery import discover\n"
    bound += "discover(CpuReader(1), Devices(), SystemClock())\n"
    card = unfiltered(1).cards[0]
    child = subprocess.run([sys.executable, "-c", bound], input=card.canonical(), capture_output=True, check=False)
    assert b"sched_affinity: expected no affinity before discovery" in child.stderr


def test_asking_for_the_allowed_cpus_binds_nothing() -> None:
    before = os.sched_getaffinity(0)
    assert before <= allowed_cpus()
    assert os.sched_getaffinity(0) == before


def test_a_cpu_that_is_not_there_is_named() -> None:
    cards = Cards(vendor=CardVendor.CPU, count=2, identities=("cpu:0", "cpu:8190-8191"))
    with pytest.raises(
        PreflightFailed, match=r"cpu:8190-8191: expected this card, once, got cpu:0; cpu:8190-8191: CPUs"
    ):
        select(unfiltered(2, ("cpu:0", "cpu:8190-8191")), cards)


def test_cpu_cards_need_no_variable_and_are_never_busy() -> None:
    card = unfiltered(1).cards[0]
    assert affinity_environment(card) == {}
    assert busy_problems((card,), DEVICES) == ()
    assert card_state(card, card, DEVICES).problems == ()
    with pytest.raises(ValueError, match="no UUID"):
        identity_from_torch(CardVendor.CPU, card.identity)
