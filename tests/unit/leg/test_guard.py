"""Whatever is signalled, cut or killed: what is left behind is a record, and never a server."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from labctl.records.leg import StopCause
from labctl.records.wire import read_wire_row
from tests.fakes.leg import LegPlace, RunningLeg, await_gone, codes_of


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_row_ends_in_records(place: LegPlace, number: signal.Signals) -> None:
    with RunningLeg.start(place, place.order("--stall")) as leg:
        leg.await_event("ready")
        await_row(place)
        leg.signal(number)
        assert leg.wait() == 4
    ended = place.exit()
    assert (ended.cause, codes_of(ended.problems)) == (StopCause.INTERRUPTED, ["INTERRUPTED"])
    reads, received = place.files.wire_reads(1).read_bytes(), place.files.wire_bytes(1).read_bytes()
    assert read_wire_row(reads, received, "row").closed.ended == "interrupted"
    assert place.process().root.argv
    place.assert_closed()
    place.assert_nothing_left()


def await_row(place: LegPlace) -> None:
    while b"POST" not in place.files.server_log.read_bytes():
        os.sched_yield()


def test_a_hangup_does_nothing(place: LegPlace) -> None:
    with RunningLeg.start(place, place.order("--ready-after", "0.5")) as leg:
        leg.await_event("started")
        leg.signal(signal.SIGHUP)
        os.kill(leg.worker_pid, signal.SIGHUP)
        assert leg.wait() == 0
    assert place.exit().cause is StopCause.COMPLETED


@pytest.mark.parametrize("how", ["end", "silence"])
def test_a_cut_lifeline_ends_in_records(place: LegPlace, how: str) -> None:
    with RunningLeg.start(place, place.order("--stall", limits={"silence_s": 2})) as leg:
        leg.await_event("ready")
        if how == "end":
            leg.cut_lifeline()
        else:
            leg.fall_silent()
        assert leg.wait() == 4
        leg.close_silent_lifeline()
    ended = place.exit()
    assert (ended.cause, codes_of(ended.problems)) == (StopCause.INTERRUPTED, ["LIFELINE_CUT"])
    place.assert_closed()
    place.assert_nothing_left()


def test_a_killed_guard_leaves_an_ordered_end(place: LegPlace) -> None:
    note = place.root / "grandchild"
    order = place.order("--stall", "--grandchild", str(note), limits={"stop_timeout_s": 1})
    with RunningLeg.start(place, order) as leg:
        leg.await_event("ready")
        pids = [leg.worker_pid, *place.servers()]
        assert int(note.read_text()) in pids
        leg.signal(signal.SIGKILL)
        await_gone(pids, within_s=8)
    assert codes_of(place.exit().problems) == ["INTERRUPTED"]
    place.assert_closed()
    place.assert_nothing_left()


def test_a_killed_worker_leaves_no_server_and_no_grandchild(place: LegPlace) -> None:
    note, name = place.root / "grandchild", f"labctl-test-{place.port}"
    try:
        with RunningLeg.start(place, place.order("--stall", "--segment", name, "--grandchild", str(note))) as leg:
            leg.await_event("ready")
            pids = place.servers()
            assert int(note.read_text()) in pids
            assert len(pids) == 2
            os.kill(leg.worker_pid, signal.SIGKILL)
            await_gone(pids, within_s=3)
            assert leg.wait() == 4
            assert leg.errors() == f"shared memory /dev/shm/{name} of a killed leg is left; remove it\n"
    finally:
        Path("/dev/shm", name).unlink()
    assert not place.files.exit.exists()


def test_a_guard_and_worker_that_are_killed_together_leave_no_server_root(place: LegPlace) -> None:
    with RunningLeg.start(place, place.order("--stall")) as leg:
        leg.await_event("ready")
        pids = place.servers()
        assert len(pids) == 1
        worker = leg.worker_pid
        leg.signal(signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        leg.signal(signal.SIGKILL)
        await_gone(pids, within_s=3)


@pytest.mark.parametrize("seed", range(6))
def test_a_signal_at_any_moment_leaves_a_closed_leg_and_no_server(place: LegPlace, seed: int) -> None:
    moment = random.Random(seed)  # noqa: S311 (moments, not secrets)
    with RunningLeg.start(place, place.order("--ready-after", "0.2")) as leg:
        time.sleep(moment.uniform(0.2, 0.7))
        leg.signal(moment.choice([signal.SIGTERM, signal.SIGINT]))
        status = leg.wait()
        await_gone(place.servers(), within_s=5)
    if place.files.started.exists():  # else it came before anything was claimed
        place.assert_closed()
        assert (status == 0) == (place.exit().cause is StopCause.COMPLETED)
        place.assert_nothing_left()
