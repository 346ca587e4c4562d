"""NVIDIA cards, against libraries that behave as NVML and the CUDA driver are known to behave."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import LegFailed, PreflightFailed
from labctl.host.devices.affinity import affinity_environment
from labctl.host.devices.discovery import discover, discover_filtered, require_only, select
from labctl.host.devices.nvidia import NvidiaReader, own_script
from labctl.host.devices.nvml_cards import every_card
from labctl.host.devices.occupancy import busy_problems
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Discovery, identity_from_torch
from tests.fakes.nvidia import FakeMachine, FakeNvml, nvidia_reader, two_cards

TWO = Cards(vendor=CardVendor.NVIDIA, count=2, identities="discover")
FIRST, SECOND = "GPU-22222222-aaaa-bbbb-cccc-000000000002", "GPU-11111111-aaaa-bbbb-cccc-000000000001"
DEVICES = Devices()


def unfiltered(reader: NvidiaReader) -> Discovery:
    return discover(reader, DEVICES, SystemClock())


def filtered(reader: NvidiaReader, environment: dict[str, str]) -> Discovery:
    return discover_filtered(reader, environment, DEVICES, SystemClock())


@pytest.fixture
def reader(tmp_path: Path) -> NvidiaReader:
    return nvidia_reader(tmp_path, two_cards())


@pytest.mark.parametrize("gives_bytes", [False, True])
def test_cards_are_found_in_the_order_of_their_addresses(tmp_path: Path, gives_bytes: bool) -> None:
    found = unfiltered(nvidia_reader(tmp_path, replace(two_cards(), gives_bytes=gives_bytes)))
    assert [card.identity for card in found.cards] == [FIRST, SECOND]
    assert [card.bus_id for card in found.cards] == ["0000:19:00.0", "0000:9b:00.0"]
    assert [card.index for card in found.cards] == [1, 0]
    assert [card.nodes for card in found.cards] == [("/dev/nvidia0",), ("/dev/nvidia1",)]
    assert {(card.name, card.driver) for card in found.cards} == {("NVIDIA H200", "580.95.05")}
    assert (found.tool.name, found.tool.version) == ("NVML", "13.580.95.05")


def test_the_kernels_nodes_are_added_where_it_shows_them(tmp_path: Path) -> None:
    for name in ("card2", "renderD129", "controlD64"):
        (tmp_path / "sys/bus/pci/devices/0000:19:00.0/drm" / name).mkdir(parents=True)
    card = unfiltered(nvidia_reader(tmp_path, two_cards())).cards[0]
    assert card.drm_node == "/dev/dri/card2"
    assert card.nodes == ("/dev/nvidia0", "/dev/dri/card2", "/dev/dri/renderD129")


def test_each_card_alone_is_renumbered_and_still_itself(reader: NvidiaReader) -> None:
    for card in select(unfiltered(reader), TWO):
        alone = filtered(reader, affinity_environment(card))
        assert alone.filtered_by == {"CUDA_VISIBLE_DEVICES": card.identity}
        assert require_only(alone, card).index == 0


def test_nvml_alone_would_not_notice_a_filter(reader: NvidiaReader) -> None:
    card = unfiltered(reader).cards[1]
    assert len(filtered(reader, affinity_environment(card)).cards) == 1
    assert len(reader.every_card().cards) == 2
    with pytest.raises(LegFailed, match=f"expected {card.identity} alone, got "):
        require_only(filtered(reader, {}), card)


def test_another_card_than_the_selected_one_is_named(reader: NvidiaReader) -> None:
    first, second = select(unfiltered(reader), TWO)
    with pytest.raises(LegFailed, match=f"identity: expected {FIRST}, got {SECOND}"):
        require_only(filtered(reader, affinity_environment(second)), first)


def test_a_filter_that_leaves_nothing_is_the_drivers_error(reader: NvidiaReader) -> None:
    with pytest.raises(PreflightFailed, match="got cuInit gave CUDA error 100, exit status 1"):
        filtered(reader, {"CUDA_VISIBLE_DEVICES": ""})


def test_discovery_under_affinity_is_refused(reader: NvidiaReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(PreflightFailed, match="CUDA_VISIBLE_DEVICES: expected no affinity before discovery, got ''"):
        unfiltered(reader)


def test_a_driver_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(PreflightFailed, match="Driver Not Loaded, exit status 1; install the driver"):
        unfiltered(nvidia_reader(tmp_path, FakeMachine((), fault="Driver Not Loaded")))


def test_a_driver_that_hangs_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(PreflightFailed, match="no end after 1 s, so it was killed"):
        unfiltered(nvidia_reader(tmp_path, FakeMachine((), hangs=True), timeout_s=1))


def test_a_divided_card_is_refused(tmp_path: Path) -> None:
    first, second = two_cards().cards
    found = unfiltered(nvidia_reader(tmp_path, FakeMachine((first, replace(second, is_divided=True)))))
    with pytest.raises(PreflightFailed, match=r"it is divided \(MIG\)"):
        select(found, TWO)


def test_processes_of_others_make_a_card_busy_named_or_not(tmp_path: Path) -> None:
    first, second = two_cards().cards
    used = replace(second, processes=((-7, None), (4242, 1 << 30)))
    found = unfiltered(nvidia_reader(tmp_path, FakeMachine((first, used))))
    problems = busy_problems(found.cards, DEVICES)
    assert {problem.code for problem in problems} == {Code.HOST_BUSY}
    assert [problem.got for problem in problems] == ["a process (-7)", "python3 (4242)"]


class LostNvml(FakeNvml):
    """NVML over a card that fell off the bus."""

    def nvmlDeviceGetName(self, handle: object) -> str:  # noqa: N802, ARG002
        message = "GPU is lost"
        raise self.NVMLError(message)


def test_nvml_is_closed_again_after_a_fault() -> None:
    library = LostNvml(two_cards())
    with pytest.raises(library.NVMLError, match="GPU is lost"):
        every_card(library)
    assert not library.is_open


@pytest.mark.parametrize("name", ["nvml_cards.py", "cuda_visible.py"])
def test_labctls_own_scripts_run_alone_and_answer_in_json(name: str) -> None:
    child = subprocess.run(own_script(name), capture_output=True, check=False, env={}, timeout=60)
    answer = json.loads(child.stdout)
    assert set(answer) == ({"error"} if child.returncode else {"cards"} | (set(answer) & {"driver", "nvml"}))
    assert child.returncode in {0, 1}
    assert child.stderr == b""


def test_torchs_uuid_lacks_the_prefix() -> None:
    assert identity_from_torch(CardVendor.NVIDIA, FIRST.removeprefix("GPU-")) == FIRST
