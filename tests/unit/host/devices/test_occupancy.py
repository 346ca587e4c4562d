"""Who holds a card: real processes that hold a file, which stands for a device node, open."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import LegFailed
from labctl.host.devices.occupancy import busy_problems, card_state, holders_of, require_free, with_holders
from labctl.prereg.cards import CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card, CardProcess

DEVICES = Devices()


def card_at(node: Path, *processes: CardProcess) -> Card:
    return Card(
        vendor=CardVendor.INTEL,
        identity="00000000-0000-0023-0000-0000e2238086",
        bus_id="0000:23:00.0",
        drm_node=str(node),
        nodes=(str(node),),
        index=0,
        name="a card",
        driver="1",
        memory_total_bytes=1 << 35,
        memory_used_bytes=0,
        processes=processes,
    )


@contextmanager
def holding(node: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds a node open and does nothing."""
    code = "import sys; held = open(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(node)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_a_process_with_the_node_open_is_on_the_card(tmp_path: Path) -> None:
    node, other = tmp_path / "card0", tmp_path / "card1"
    node.touch()
    other.touch()
    with holding(node) as process:
        held, free = with_holders((card_at(node), card_at(other)), ())
        assert [one.pid for one in held.processes] == [process.pid]
        assert free.processes == ()
        (problem,) = busy_problems((held, free), DEVICES)
        assert f"({process.pid})" in problem.got
    assert holders_of({str(node)}) == {str(node): ()}


def test_a_service_that_the_host_profile_names_is_tolerated(tmp_path: Path) -> None:
    node = tmp_path / "card0"
    node.touch()
    with holding(node) as process:
        name = Path(f"/proc/{process.pid}/comm").read_text().strip()
        (card,) = with_holders((card_at(node),), (name,))
    assert [one.role for one in card.processes] == ["tolerated"]
    assert busy_problems((card,), DEVICES) == ()


def test_what_the_vendors_tool_says_of_a_process_is_kept(tmp_path: Path) -> None:
    node = tmp_path / "card0"
    node.touch()
    with holding(node) as process:
        known = CardProcess(pid=process.pid, name="engine", memory_bytes=7, role="client")
        (card,) = with_holders((card_at(node, known),), ())
    assert card.processes == (known,)


def test_who_works_on_another_card_is_a_bystander_here(tmp_path: Path) -> None:
    node, other = tmp_path / "card0", tmp_path / "card1"
    node.touch()
    other.touch()
    with holding(node) as process:
        busy = card_at(other, CardProcess(pid=process.pid, name="engine", memory_bytes=7, role="client"))
        held, used = with_holders((card_at(node), busy), ())
    assert [one.role for one in held.processes] == ["bystander"]
    assert [one.role for one in used.processes] == ["client"]
    assert len(busy_problems((held, used), DEVICES)) == 1


def test_a_card_that_somebody_took_since_preflight_fails_the_leg(tmp_path: Path) -> None:
    free = card_at(tmp_path / "card0")
    assert require_free(free, DEVICES) == free
    taken = card_at(tmp_path / "card0", CardProcess(pid=7, name="engine", memory_bytes=7, role="client"))
    with pytest.raises(LegFailed, match=r"expected no process on it, got engine \(7\)") as caught:
        require_free(taken, DEVICES)
    assert caught.value.codes == (Code.HOST_BUSY,)


def test_a_process_that_is_left_after_a_leg_is_named(tmp_path: Path) -> None:
    before = card_at(tmp_path / "card0", CardProcess(pid=1, name="service", memory_bytes=None, role="client"))
    left = CardProcess(pid=2, name="worker", memory_bytes=None, role="client")
    after = card_at(tmp_path / "card0", *before.processes, left)
    assert card_state(before, after, DEVICES).problems == ("worker (2) is on it",)


def test_another_card_after_a_leg_is_named(tmp_path: Path) -> None:
    after = card_at(tmp_path / "card1")
    (problem,) = card_state(card_at(tmp_path / "card0"), after, DEVICES).problems
    assert problem == f"drm_node: {tmp_path}/card0 before, {tmp_path}/card1 after"


def test_no_node_means_no_search() -> None:
    assert holders_of(()) == {}
