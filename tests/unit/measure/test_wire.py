import socket
import struct
from pathlib import Path

import httpcore
import pytest

from labctl.clock import Clock
from labctl.measure.client import RowFiles, RowRequest, measure_row
from labctl.measure.wire import (
    SO_TIMESTAMPING,
    Capture,
    RowLimits,
    StampedBackend,
    kernel_stamp_ns,
    kernel_stamps_held,
)
from labctl.records.wire import ConnectStarted, Read, Sent, read_wire_row
from tests.fakes.stream_server import StreamServer, token_stream

STAMP = struct.pack("@6l", 1_700_000_000, 123_456_789, 0, 0, 0, 0)


class CountingClock:
    """A clock whose every reading is one microsecond after the one before; the wall clock jumps at a given reading."""

    def __init__(self, *, jump_at: int = -1) -> None:
        self._readings = 0
        self._jump_at = jump_at

    def monotonic_ns(self) -> int:
        self._readings += 1
        return self._readings * 1_000

    def realtime_ns(self) -> int:
        jump_ns = 5_000_000 if 0 <= self._jump_at < self._readings else 0
        return self.monotonic_ns() + 10**18 + jump_ns

    def boottime_ns(self) -> int:
        return self.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        self._readings += int(seconds * 1e6)


def connected_stream(server: StreamServer, capture: Capture, clock: Clock) -> httpcore.NetworkStream:
    return StampedBackend(capture, RowLimits(), clock).connect_tcp(server.host, server.port, 5)


def test_the_software_stamp_is_the_first_of_three() -> None:
    assert kernel_stamp_ns([(socket.SOL_SOCKET, SO_TIMESTAMPING, STAMP)]) == 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    "ancillary",
    [
        [],
        [(socket.SOL_SOCKET, SO_TIMESTAMPING, bytes(48))],
        [(socket.SOL_SOCKET, SO_TIMESTAMPING, STAMP[:-1])],
        [(socket.SOL_SOCKET, SO_TIMESTAMPING + 1, STAMP)],
        [(socket.IPPROTO_TCP, SO_TIMESTAMPING, STAMP)],
    ],
)
def test_anything_else_is_no_stamp(ancillary: list[tuple[int, int, bytes]]) -> None:
    assert kernel_stamp_ns(ancillary) is None


def test_other_ancillary_data_does_not_hide_the_stamp() -> None:
    ancillary = [(socket.SOL_SOCKET, 1, b"x"), (socket.SOL_SOCKET, SO_TIMESTAMPING, STAMP)]
    assert kernel_stamp_ns(ancillary) == 1_700_000_000_123_456_789


def test_facts_become_lines_in_the_order_of_the_format() -> None:
    capture = Capture()
    capture.connect_started = ConnectStarted(mono_ns=1, realtime_ns=2)
    capture.writes.append((3, 4, 5, b"\xff\x00"))
    capture.reads.append(([(socket.SOL_SOCKET, SO_TIMESTAMPING, STAMP)], 6, b"abc"))
    capture.reads.append(([], 7, b"de"))
    assert list(capture.lines()) == [
        ConnectStarted(mono_ns=1, realtime_ns=2),
        Sent(mono_before_ns=3, mono_after_ns=4, realtime_ns=5, bytes_latin1="\xff\x00"),
        Read(kernel_ns=1_700_000_000_123_456_789, mono_ns=6, length=3),
        Read(kernel_ns=None, mono_ns=7, length=2),
    ]
    assert capture.received == b"abcde"


def test_a_long_write_is_kept_piece_by_piece_as_the_kernel_took_it() -> None:
    capture = Capture()
    body = bytes(range(256)) * 20_000
    head = f"POST / HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with StreamServer([]) as server:
        stream = connected_stream(server, capture, CountingClock())
        stream.write(head + body, 5)
        assert stream.read(10, 5) == b""
        stream.close()
    assert b"".join(data for _, _, _, data in capture.writes) == head + body == server.requests[0]
    assert capture.peer_closed


def test_nagle_is_off_and_the_first_row_has_kernel_stamps() -> None:
    capture = Capture()
    with kernel_stamps_held(), StreamServer(list(token_stream(1))) as server:
        stream = connected_stream(server, capture, CountingClock())
        stream.write(b"GET / HTTP/1.1\r\n\r\n", 5)
        stream.close()
    assert capture.reads
    assert all(kernel_stamp_ns(ancillary) for ancillary, _, _ in capture.reads)


def test_the_stamps_of_a_row_are_those_of_the_given_clock(tmp_path: Path) -> None:
    files = RowFiles(tmp_path / "01.bin", tmp_path / "01.reads.jsonl")
    with StreamServer(list(token_stream(2, 0.005))) as server:
        request = RowRequest(row=1, prompt_id="p", host=server.host, port=server.port, path="/v1", body=b"{}")
        measure_row(request, files, RowLimits(), CountingClock(jump_at=20))
    row = read_wire_row(files.reads.read_bytes(), files.wire.read_bytes(), "w")
    assert row.connect_started.mono_ns < 100_000
    assert row.closed.mono_ns < 1_000_000
    assert row.opened.clock_offset_ns == 10**18
    assert row.clock_step_ns == 5_000_000
