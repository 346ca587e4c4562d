import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from labctl.records.leg import StopCause
from labctl.records.wire import read_wire_row
from tests.fakes.leg import ENVIRONMENT, LegPlace, RunningLeg, codes_of, run


def told(metrics: Path) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in metrics.read_text().splitlines())


def test_a_completed_leg_leaves_every_record_and_nothing_else(place: LegPlace) -> None:
    status, errors = run(place)
    assert (status, errors) == (0, "")
    ended = place.exit()
    assert (ended.cause, ended.problems, ended.rows_completed) == (StopCause.COMPLETED, (), 3)
    files = place.files
    for row in (1, 2, 3):
        wire = read_wire_row(files.wire_reads(row).read_bytes(), files.wire_bytes(row).read_bytes(), "row")
        assert wire.closed.ended == "complete"
    assert [json.loads(line)["row"] for line in files.telemetry.read_text().splitlines()] == [0, 1, 2, 3]
    before, after = told(files.metrics_before), told(files.metrics_after)
    assert (before["rows_total"], after["rows_total"]) == ("0", "3")
    assert before["started_seconds"] == after["started_seconds"]
    assert files.log.read_bytes() == b""
    assert b"POST /v1/completions" in files.server_log.read_bytes()
    left = place.postflight()
    assert (left.exit_status, left.killed, left.processes_left, left.listeners_left) == (0, (), (), ())
    assert left.log_bytes == files.server_log.stat().st_size
    place.assert_closed()
    place.assert_nothing_left()


def test_process_facts_are_those_of_the_server(place: LegPlace) -> None:
    run(place)
    seen = place.process()
    assert seen.root.argv == place.order().argv
    assert Path(seen.root.executable).samefile(sys.executable)
    assert [listener.owner_pids for listener in seen.listeners] == [(seen.root.pid,)]
    assert seen.listeners_after == seen.listeners
    assert seen.roots_after == (seen.root.start_ticks,)
    assert seen.readiness.served_model == f"labctl-{place.order().nonce}"
    paths = [line.split("\t")[0] for line in place.files.maps.read_text().splitlines()]
    assert os.path.realpath(seen.root.executable) in paths
    assert paths == sorted(set(paths))


def test_nothing_ambient_reaches_the_server(place: LegPlace) -> None:
    ambient = os.environ | {"LD_LIBRARY_PATH": "/nowhere", "HTTP_PROXY": "http://127.0.0.1:9", "PYTHONPATH": "/nowhere"}
    ambient |= {"LD_PRELOAD": "libm.so.6", "MALLOC_ARENA_MAX": "1", "HF_TOKEN": "secret"}
    with RunningLeg.start(place, place.order(), ambient) as leg:
        leg.await_event("started")
        environ = Path(f"/proc/{leg.events[-1]['pid']}/environ").read_bytes()
        assert leg.wait() == 0
    names = {entry.partition(b"=")[0].decode() for entry in environ.split(b"\0") if entry}
    assert names == set(ENVIRONMENT)
    assert place.process().root.environment == ENVIRONMENT
    assert place.process().root.environment_other == ()


FAILURES = [
    (("--exit-at-start", "7"), StopCause.NOT_READY, ["SERVER_EXITED"]),
    (("--never-ready",), StopCause.NOT_READY, ["READY_TIMEOUT"]),
    (("--redirect-health",), StopCause.NOT_READY, ["READY_TIMEOUT"]),
    (("--second-listener",), StopCause.NOT_READY, ["FOREIGN_LISTENER"]),
    (("--serve-as", "someone-else"), StopCause.NOT_READY, ["FOREIGN_LISTENER"]),
    (("--die-in-row", "2"), StopCause.STREAM, ["STREAM_BROKEN", "SERVER_EXITED"]),
]


@pytest.mark.parametrize(("misbehaviour", "cause", "codes"), FAILURES)
def test_a_failing_server_ends_in_a_closed_leg_that_says_why(
    place: LegPlace, misbehaviour: tuple[str, ...], cause: StopCause, codes: list[str]
) -> None:
    patience_s = 1 if "READY_TIMEOUT" in codes else 10
    status, _ = run(place, *misbehaviour, limits={"ready_timeout_s": patience_s})
    ended = place.exit()
    assert status == 4
    assert (ended.cause, codes_of(ended.problems)) == (cause, codes)
    assert place.postflight().processes_left == ()
    place.assert_closed()
    place.assert_nothing_left()


def test_a_server_that_ends_at_once_is_told_by_status_and_last_line(place: LegPlace) -> None:
    run(place, "--exit-at-start", "7")
    (problem,) = place.exit().problems
    assert "exit status 7" in problem
    assert "no memory for the model" in problem
    assert "\x1b" not in problem
    assert not place.files.process.exists()


def test_a_program_that_is_not_there_is_told(place: LegPlace) -> None:
    status, _ = run(place, argv=("/no/such/python",))
    assert status == 4
    assert codes_of(place.exit().problems) == ["SERVER_EXITED"]
    place.assert_closed()


def test_a_stranger_on_the_port_is_noticed(place: LegPlace) -> None:
    order = place.order("--share-port", "--ready-after", "0.8", limits={"ready_timeout_s": 2})
    with RunningLeg.start(place, order) as leg:
        leg.await_event("started")
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            stranger.bind(("127.0.0.1", place.port))
            stranger.listen()
            assert leg.wait() == 4
    ended = place.exit()
    # The stranger listens on after our stop.
    assert codes_of(ended.problems) == ["FOREIGN_LISTENER", "LEFTOVER"]


def test_rows_before_a_death_are_kept(place: LegPlace) -> None:
    run(place, "--die-in-row", "2")
    assert place.exit().rows_completed == 1
    assert "signal 9" in place.exit().problems[1]
    reads, received = place.files.wire_reads(2).read_bytes(), place.files.wire_bytes(2).read_bytes()
    assert read_wire_row(reads, received, "row").closed.ended == "transport_error"
    assert place.process().roots_after == ()
    assert place.postflight().exit_status == -signal.SIGKILL


def test_a_server_that_starts_itself_anew_is_seen_in_its_counters(place: LegPlace) -> None:
    status, _ = run(place, "--restart-after-row", "1")
    seen = place.process()
    assert status == 0
    # the same process and the same socket: only what the server says of itself can tell
    assert seen.roots_after == (seen.root.start_ticks,)
    assert seen.listeners_after == seen.listeners
    before, after = told(place.files.metrics_before), told(place.files.metrics_after)
    assert before["started_seconds"] != after["started_seconds"]
    assert int(after["rows_total"]) < place.exit().rows_completed


def test_a_server_that_ignores_sigterm_is_killed_and_named(place: LegPlace) -> None:
    status, _ = run(place, "--ignore-sigterm", limits={"stop_timeout_s": 1})
    left = place.postflight()
    assert status == 0
    assert left.killed == (place.process().root.pid,)
    assert left.exit_status == -signal.SIGKILL
    assert left.ended_mono_ns - left.stop_signal_mono_ns >= 1_000_000_000
    place.assert_nothing_left()


def test_an_orphan_in_a_session_of_its_own_is_seen_and_ended(place: LegPlace) -> None:
    note = place.root / "grandchild"
    status, _ = run(place, "--grandchild", str(note), limits={"stop_timeout_s": 1})
    pid = int(note.read_text())
    assert status == 0
    assert pid in [process.pid for process in place.process().tree]
    assert place.postflight().killed == (pid,)
    place.assert_nothing_left()


def test_a_segment_that_the_server_leaves_fails_the_leg(place: LegPlace) -> None:
    name = f"labctl-test-{place.port}"
    try:
        status, _ = run(place, "--segment", name)
        assert Path("/dev/shm", name).exists()
    finally:
        Path("/dev/shm", name).unlink(missing_ok=True)
    assert status == 4
    assert place.exit().cause is StopCause.LEFTOVER
    assert codes_of(place.exit().problems) == ["LEFTOVER"]
    assert place.postflight().shared_memory_left == (f"/dev/shm/{name}",)


def test_a_flood_of_log_ends_the_leg_and_stays_within_the_limit(place: LegPlace) -> None:
    with RunningLeg.start(place, place.order("--log-bytes", str(10 << 30), limits={"stop_timeout_s": 1})) as leg:
        leg.await_event("stopping")
        peak_kib = peak_resident_kib(leg.worker_pid)
        assert leg.wait() == 4
    ended = place.exit()
    assert ended.cause is StopCause.LOG_LIMIT
    assert codes_of(ended.problems) == ["LOG_LIMIT", "LOG_LIMIT"]
    assert "xxxx" in ended.problems[1]
    assert place.files.server_log.stat().st_size == 1 << 20 == place.postflight().log_bytes
    assert peak_kib < 200 * 1024
    place.assert_closed()
    place.assert_nothing_left()


def peak_resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_fault_of_ours_leaves_a_closed_leg_with_a_traceback(place: LegPlace) -> None:
    asks_nothing = place.order().requests.model_copy(update={"prompts": ()})
    status, _ = run(place, requests=asks_nothing)
    assert status == 4
    assert (place.exit().cause, codes_of(place.exit().problems)) == (StopCause.HOST, ["LEG_CRASHED"])
    assert b"Traceback (most recent call last)" in place.files.log.read_bytes()
    place.assert_closed()
    place.assert_nothing_left()


def test_a_record_that_is_in_the_way_fails_the_leg_and_stops_the_server(place: LegPlace) -> None:
    place.files.telemetry.write_text("from somewhere else")
    status, _ = run(place)
    assert status == 4
    assert (place.exit().cause, codes_of(place.exit().problems)) == (StopCause.HOST, ["EXISTS"])
    assert place.postflight().exit_status == 0
    place.assert_nothing_left()


def test_the_embedded_endpoint_is_measured_whole(place: LegPlace) -> None:
    order = place.order()
    served = ("--served-model-name", f"labctl-{order.nonce}", "--port", str(place.port))
    argv = (sys.executable, "-I", "-P", "-m", "labctl.servers.reference", *served, "--no-enable-prefix-caching")
    status, errors = run(place, argv=argv)
    assert (status, errors) == (0, "")
    assert place.exit().rows_completed == 3
    assert place.process().readiness.version_body == '{"version":"reference-1"}'
    for row in (1, 2, 3):
        assert f"labctl-{order.nonce}".encode() in place.files.wire_bytes(row).read_bytes()
    assert b"vllm:generation_tokens_total" in place.files.metrics_after.read_bytes()
    place.assert_closed()
    place.assert_nothing_left()
