"""NVIDIA cards, the real ones: skipped by name where no driver is loaded."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.host.devices.affinity import affinity_environment
from labctl.host.devices.discovery import discover, discover_filtered, reader_of, require_only, select
from labctl.host.devices.occupancy import busy_problems, card_state
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card, Discovery, identity_from_torch

DEVICES = Devices()
ANY = Cards(vendor=CardVendor.NVIDIA, count=1, identities="discover")
READER = reader_of(ANY, DEVICES)
ALLOCATE = """
import sys, torch
held = torch.zeros(2 << 30, dtype=torch.uint8, device="cuda:0")
torch.cuda.synchronize()
print(torch.cuda.get_device_properties(0).uuid, torch.cuda.device_count(), flush=True)
sys.stdin.read()
"""
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="no NVIDIA driver is loaded"),
    pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="the extra `nvidia` is not installed"),
]


def unfiltered() -> Discovery:
    return discover(READER, DEVICES, SystemClock())


@contextmanager
def worker_on(card: Card) -> Iterator[list[str]]:
    """A process that sees this card alone and holds 2 GiB of it; what torch says of it."""
    pytest.importorskip("torch")
    environment = {**os.environ, **affinity_environment(card)}
    with subprocess.Popen(
        [sys.executable, "-c", ALLOCATE], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().split()
        process.stdin.close()


def test_every_card_has_its_names_and_is_free() -> None:
    found = unfiltered()
    assert found.cards
    assert found.problems == ()
    assert len({card.identity for card in found.cards}) == len(found.cards)
    for card in found.cards:
        assert card.identity.startswith("GPU-")
        assert Path(card.nodes[0]).exists()
        assert card.memory_used_bytes is not None
        assert 0 <= card.memory_used_bytes < card.memory_total_bytes
    assert busy_problems(found.cards, DEVICES) == ()


def test_each_card_alone_is_itself_to_the_driver_and_to_torch() -> None:
    for card in unfiltered().cards:
        alone = discover_filtered(READER, affinity_environment(card), DEVICES, SystemClock())
        assert require_only(alone, card).identity == card.identity
        with worker_on(card) as (text, count):
            assert (identity_from_torch(CardVendor.NVIDIA, text), count) == (card.identity, "1")


def test_a_worker_makes_its_card_busy_and_leaves_it_as_it_was() -> None:
    (before,) = select(unfiltered(), ANY)
    with worker_on(before):
        (during,) = select(unfiltered(), ANY)
        assert busy_problems((during,), DEVICES) != ()
        assert card_state(before, during, DEVICES).problems != ()
        others = [card for card in unfiltered().cards if card.identity != before.identity]
        assert busy_problems(others, DEVICES) == ()
    (after,) = select(unfiltered(), ANY)
    assert busy_problems((after,), DEVICES) == ()
    assert card_state(before, after, DEVICES).problems == ()
