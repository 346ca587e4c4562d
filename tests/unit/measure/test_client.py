import contextlib
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import Refused, StreamBroken
from labctl.measure.client import RowFiles, RowRequest, fetch_bytes, heap_kept, measure_row
from labctl.measure.wire import RowLimits
from labctl.records.wire import RowClosed, WireRow, read_wire_row
from tests.fakes.stream_server import (
    DONE,
    LAST_CHUNK,
    STREAM_HEAD,
    Hold,
    Pause,
    Reset,
    Send,
    Step,
    StreamServer,
    chunk,
    event,
    response,
    token_stream,
)

BODY = '{"prompt":"été"}'.encode()
LIMITS = RowLimits(connect_s=5, read_s=5, total_s=10, drain_s=0.5, response_bytes=1 << 20)
PROXY_NAMES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


class Interrupted(Exception):
    pass


def request_to(port: int, *, row: int = 1, host: str = "127.0.0.1") -> RowRequest:
    return RowRequest(row=row, prompt_id="p01", host=host, port=port, path="/v1/completions", body=BODY)


def files_in(folder: Path, row: int = 1) -> RowFiles:
    return RowFiles(folder / f"{row:02d}.bin", folder / f"{row:02d}.reads.jsonl")


def on_disk(files: RowFiles) -> WireRow:
    return read_wire_row(files.reads.read_bytes(), files.wire.read_bytes(), files.reads.name)


def measured(folder: Path, plan: Sequence[Step], limits: RowLimits = LIMITS) -> tuple[RowClosed, WireRow, StreamServer]:
    with StreamServer(plan) as server:
        closed = measure_row(request_to(server.port), files_in(folder), limits, SystemClock())
    return closed, on_disk(files_in(folder)), server


@contextlib.contextmanager
def timer_running(timer: threading.Timer) -> Iterator[None]:
    timer.start()
    yield
    timer.join()


def sent_bytes(plan: Sequence[Step]) -> bytes:
    return b"".join(step.data for step in plan if isinstance(step, Send))


def test_a_complete_stream_is_kept_byte_for_byte(tmp_path: Path) -> None:
    plan = list(token_stream(20, 0.002))
    closed, row, server = measured(tmp_path, plan)
    assert (closed.ended, closed.detail, closed.http_status, closed.peer_closed) == ("complete", None, 200, True)
    assert row.closed == closed
    assert row.received == sent_bytes(plan)
    assert row.connected is not None
    assert (row.connected.peer_address, row.connected.peer_port) == ("127.0.0.1", server.port)
    assert row.connected.local_port == server.peers[0]


def test_the_row_holds_the_request_as_the_server_got_it(tmp_path: Path) -> None:
    _, row, server = measured(tmp_path, list(token_stream(1)))
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert row.request == server.requests[0]
    assert body == BODY
    fields = head.lower().split(b"\r\n")
    assert fields[0] == b"post /v1/completions http/1.1"
    assert {b"connection: close", b"accept-encoding: identity", b"content-type: application/json"} <= set(fields)


def test_single_writes_are_single_reads_with_kernel_stamps_at_the_send(tmp_path: Path) -> None:
    plan = list(token_stream(50, 0.004))
    _, row, server = measured(tmp_path, plan)
    sends = server.sends[0]
    assert row.opened.stamps == "kernel_software_rx"
    alone = 0
    ends = {sum(one.length for one in sends[: number + 1]): one for number, one in enumerate(sends)}
    begins = {end - one.length for end, one in ends.items()}
    position = 0
    for read in row.reads:
        begin, position = position, position + read.length
        sending = ends[position]
        assert read.kernel_ns is not None
        assert sending.before_ns <= read.kernel_ns <= sending.after_ns + 5_000_000
        alone += begin in begins and sending.length == read.length
    assert alone >= 25


def test_writes_that_wait_become_one_read(tmp_path: Path) -> None:
    tokens = [Send(event({"token_ids": [number]})) for number in range(10)]
    plan: list[Step] = [
        Send(STREAM_HEAD + b"".join(step.data for step in tokens)),
        Pause(0.05),
        Send(chunk(DONE) + LAST_CHUNK),
    ]
    _, row, _ = measured(tmp_path, plan)
    assert len(row.reads) == 2
    assert row.received == sent_bytes(plan)


def test_stamps_of_both_clocks_agree(tmp_path: Path) -> None:
    _, row, _ = measured(tmp_path, list(token_stream(20, 0.002)))
    offset = row.opened.clock_offset_ns
    assert abs(row.clock_step_ns) < 1_000_000
    assert row.suspended_ns < 1_000_000
    for read in row.reads:
        assert read.kernel_ns is not None
        assert read.kernel_ns - offset <= read.mono_ns + 1_000_000
    assert row.connected is not None
    assert abs(row.connected.realtime_ns - offset - row.connected.mono_ns) < 5_000_000
    assert all(abs(write.realtime_ns - offset - write.mono_before_ns) < 5_000_000 for write in row.sent)


STREAM = list(token_stream(4))


@pytest.mark.parametrize("kept", range(len(STREAM)))
def test_a_stream_cut_at_any_step_is_no_complete_row(tmp_path: Path, kept: int) -> None:
    plan = STREAM[:kept]
    closed, row, _ = measured(tmp_path, plan)
    assert closed.ended == "transport_error"
    assert closed.detail is not None
    assert row.received == sent_bytes(plan)
    assert closed.peer_closed


def test_a_reset_is_a_transport_error_and_keeps_what_came(tmp_path: Path) -> None:
    plan = [*STREAM[:5], Pause(0.05), Reset()]
    closed, row, _ = measured(tmp_path, plan)
    assert (closed.ended, closed.http_status, closed.peer_closed) == ("transport_error", 200, False)
    assert closed.detail is not None
    assert "reset" in closed.detail.lower()
    assert row.received == sent_bytes(plan)


def test_a_reset_connection_is_not_tried_again(tmp_path: Path) -> None:
    with StreamServer([Reset()], list(token_stream(1))) as server:
        closed = measure_row(request_to(server.port), files_in(tmp_path), LIMITS, SystemClock())
        assert len(server.peers) == 1
    assert (closed.ended, closed.http_status) == ("transport_error", None)
    assert on_disk(files_in(tmp_path)).received == b""


def test_a_request_that_nobody_reads_is_a_timeout_and_keeps_what_was_taken(tmp_path: Path) -> None:
    body = b"{" + b" " * (64 << 20) + b"}"
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        request = RowRequest.model_validate({**request_to(deaf.getsockname()[1]).model_dump(), "body": body})
        closed = measure_row(request, files_in(tmp_path), RowLimits(read_s=0.2, total_s=5), SystemClock())
    row = on_disk(files_in(tmp_path))
    assert (closed.ended, closed.http_status) == ("timeout", None)
    assert 0 < len(row.request) < len(body)


def test_a_listener_that_takes_nobody_is_a_timeout_without_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            limits = RowLimits(connect_s=0.2)
            closed = measure_row(request_to(port), files_in(tmp_path), limits, SystemClock())
    assert (closed.ended, closed.http_status) == ("timeout", None)
    assert on_disk(files_in(tmp_path)).connected is None


def test_a_refused_connection_is_a_row_without_connection(tmp_path: Path) -> None:
    with StreamServer() as server:
        port = server.port
    closed = measure_row(request_to(port), files_in(tmp_path), LIMITS, SystemClock())
    row = on_disk(files_in(tmp_path))
    assert closed.ended == "transport_error"
    assert row.connected is None
    assert row.received == b""


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with StreamServer() as elsewhere:
        answer = response("302 Found", "text/plain", b"", f"location: http://127.0.0.1:{elsewhere.port}/v1/completions")
        closed, row, server = measured(tmp_path, [Send(answer)])
        assert elsewhere.peers == []
    assert (closed.ended, closed.http_status) == ("status_not_200", 302)
    assert row.received == answer
    assert len(server.peers) == 1


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Internal Server Error", "503 Busy"])
def test_any_other_status_is_not_tried_again_and_its_body_is_kept(tmp_path: Path, status: str) -> None:
    answer = response(status, "application/json", b'{"error":{"message":"no"}}')
    closed, row, server = measured(tmp_path, [Send(answer)])
    assert (closed.ended, closed.http_status) == ("status_not_200", int(status[:3]))
    assert row.received == answer
    assert len(server.peers) == 1


def test_a_plain_json_body_is_kept_for_the_analyzer_to_judge(tmp_path: Path) -> None:
    answer = response("200 OK", "application/json", b'{"choices":[]}')
    closed, row, _ = measured(tmp_path, [Send(answer)])
    assert closed.ended == "complete"
    assert row.received == answer


def test_bytes_after_the_response_are_kept(tmp_path: Path) -> None:
    plan = [*token_stream(2), Pause(0.05), Send(b"HTTP/1.1 200 OK\r\n\r\n")]
    closed, row, _ = measured(tmp_path, plan)
    assert closed.ended == "complete"
    assert row.received.endswith(LAST_CHUNK + b"HTTP/1.1 200 OK\r\n\r\n")


def test_a_server_that_keeps_the_connection_costs_the_drain_time_alone(tmp_path: Path) -> None:
    started_s = time.monotonic()
    closed, _, _ = measured(
        tmp_path, [*token_stream(2), Hold()], LIMITS.model_validate({**LIMITS.model_dump(), "drain_s": 0.1})
    )
    assert (closed.ended, closed.peer_closed) == ("complete", False)
    assert time.monotonic() - started_s < 3


def test_silence_is_a_timeout(tmp_path: Path) -> None:
    limits = RowLimits(read_s=0.1, total_s=10)
    closed, row, _ = measured(tmp_path, [*STREAM[:3], Hold()], limits)
    assert (closed.ended, closed.http_status) == ("timeout", 200)
    assert row.received == sent_bytes(STREAM[:3])


def test_a_stream_that_drips_for_ever_meets_the_total_deadline(tmp_path: Path) -> None:
    limits = RowLimits(read_s=5, total_s=0.3)
    drip: list[Step] = [Send(event({})), Pause(0.02)] * 100
    closed, row, _ = measured(tmp_path, [Send(STREAM_HEAD), *drip], limits)
    assert closed.ended == "timeout"
    assert 0.25e9 < closed.mono_ns - row.connect_started.mono_ns < 1.5e9


def test_a_response_over_the_limit_is_cut_off(tmp_path: Path) -> None:
    limits = RowLimits(response_bytes=100_000)
    plan: list[Step] = [Send(STREAM_HEAD), *(Send(chunk(b"x" * 50_000)) for _ in range(20)), Hold()]
    closed, row, _ = measured(tmp_path, plan, limits)
    assert closed.ended == "over_limit"
    assert 100_000 < len(row.received) <= 100_000 + (1 << 16)


@pytest.mark.parametrize("answer", [b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"])
def test_broken_framing_is_a_transport_error(tmp_path: Path, answer: bytes) -> None:
    closed, row, _ = measured(tmp_path, [Send(answer)])
    assert closed.ended == "transport_error"
    assert row.received == answer


def test_proxies_of_the_environment_see_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StreamServer() as sink:
        for name in PROXY_NAMES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{sink.port}")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
        closed, row, _ = measured(tmp_path, list(token_stream(1)))
        assert sink.peers == []
    assert closed.ended == "complete"
    assert b"authorization" not in row.request.lower()


@pytest.mark.parametrize("host", ["localhost", "192.0.2.1", "0.0.0.0", "127.0.0.1.example", "127.1", "::1", ""])  # noqa: S104 (must be refused)
def test_only_a_literal_loopback_address_can_be_asked(host: str) -> None:
    with pytest.raises(ValidationError):
        request_to(80, host=host)


def test_a_name_is_not_resolved_for_counters_either() -> None:
    with StreamServer() as server, pytest.raises(StreamBroken) as caught:
        fetch_bytes(f"http://localhost:{server.port}/metrics", 1)
    assert "not a literal loopback address" in str(caught.value)
    assert server.peers == []


def test_two_rows_use_two_connections(tmp_path: Path) -> None:
    with StreamServer(list(token_stream(1)), list(token_stream(1))) as server:
        for row in (1, 2):
            measure_row(request_to(server.port, row=row), files_in(tmp_path, row), LIMITS, SystemClock())
        assert len(set(server.peers)) == 2
    ports = []
    for row in (1, 2):
        connected = on_disk(files_in(tmp_path, row)).connected
        assert connected is not None
        ports.append(connected.local_port)
    assert ports == server.peers


def test_no_garbage_is_collected_during_a_row_and_the_collector_comes_back(tmp_path: Path) -> None:
    with heap_kept():
        closed, _, _ = measured(tmp_path, list(token_stream(3_000)))
        assert closed.ended == "complete"
        assert closed.gc_collections == 0
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0  # the next row need not look through all this again
    assert gc.get_freeze_count() == 0


def test_a_row_never_overwrites_another(tmp_path: Path) -> None:
    measured(tmp_path, list(token_stream(1)))
    before = files_in(tmp_path).reads.read_bytes()
    with StreamServer(list(token_stream(1))) as server, pytest.raises(Refused) as caught:
        measure_row(request_to(server.port), files_in(tmp_path), LIMITS, SystemClock())
    assert caught.value.codes == (Code.EXISTS,)
    assert files_in(tmp_path).reads.read_bytes() == before


def test_a_signal_leaves_the_row_behind_and_goes_on(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    old = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        with StreamServer([*STREAM[:4], Hold()]) as server, timer_running(timer), pytest.raises(Interrupted):
            measure_row(request_to(server.port), files_in(tmp_path), LIMITS, SystemClock())
    finally:
        signal.signal(signal.SIGUSR1, old)
    row = on_disk(files_in(tmp_path))
    assert row.closed.ended == "interrupted"
    assert row.received == sent_bytes(STREAM[:4])
    assert gc.isenabled()


def test_fetched_bytes_are_the_body() -> None:
    body = b"# HELP a\na 1\n" * 1_000
    with StreamServer([Send(response("200 OK", "text/plain", body))]) as server:
        assert fetch_bytes(f"http://127.0.0.1:{server.port}/metrics", 5) == body
    assert server.requests[0].startswith(b"GET /metrics HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (lambda: [Send(response("404 Not Found", "text/plain", b"no"))], Code.STREAM_BROKEN),
        (lambda: [Send(response("302 Found", "text/plain", b"", "location: /other"))], Code.STREAM_BROKEN),
        (lambda: [Send(response("200 OK", "text/plain", b"abc")[:-1])], Code.STREAM_BROKEN),
        (lambda: [Reset()], Code.STREAM_BROKEN),
        (lambda: [Hold()], Code.REQUEST_TIMEOUT),
    ],
)
def test_counters_that_do_not_come_whole_are_refused(plan: Callable[[], list[Step]], code: Code) -> None:
    with StreamServer(plan()) as server, pytest.raises(StreamBroken) as caught:
        fetch_bytes(f"http://127.0.0.1:{server.port}/metrics", 0.3)
    assert caught.value.codes == (code,)
