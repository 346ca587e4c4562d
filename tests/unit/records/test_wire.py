from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.errors import MalformedRecord
from labctl.records.wire import (
    Connected,
    ConnectStarted,
    Line,
    Read,
    RowClosed,
    RowOpened,
    Sent,
    read_wire_row,
    wire_lines,
)

RECEIVED = b"HTTP/1.1 200 OK\r\n\r\n"
OPENED = RowOpened(
    row=1,
    prompt_id="p01",
    host="127.0.0.1",
    port=8000,
    stamps="kernel_software_rx",
    clock_offset_ns=1_000,
    boottime_minus_monotonic_ns=0,
)
CONNECT_STARTED = ConnectStarted(mono_ns=10, realtime_ns=1_010)
CONNECTED = Connected(mono_ns=20, realtime_ns=1_020, local_port=40_000, peer_address="127.0.0.1", peer_port=8000)
SENT = Sent(mono_before_ns=30, mono_after_ns=31, realtime_ns=1_030, bytes_latin1="POST /v1/completions\r\n\xe9")
READ_1 = Read(kernel_ns=1_040, mono_ns=41, length=9)
READ_2 = Read(kernel_ns=1_050, mono_ns=51, length=len(RECEIVED) - 9)
CLOSED = RowClosed(
    mono_ns=60,
    clock_offset_ns=1_000,
    boottime_minus_monotonic_ns=0,
    ended="complete",
    detail=None,
    http_status=200,
    peer_closed=True,
    gc_collections=0,
)
LINES: list[Line] = [OPENED, CONNECT_STARTED, CONNECTED, SENT, READ_1, READ_2, CLOSED]


def closed(**changes: object) -> RowClosed:
    return RowClosed.model_validate({**CLOSED.model_dump(), **changes})


def complaints(reads: bytes, received: bytes = RECEIVED) -> list[str]:
    with pytest.raises(MalformedRecord) as caught:
        read_wire_row(reads, received, "01.reads.jsonl")
    return [f"{problem.where}: {problem.expected}" for problem in caught.value.problems]


def test_a_written_row_reads_back_equal() -> None:
    row = read_wire_row(wire_lines(LINES), RECEIVED, "01.reads.jsonl")
    assert (row.opened, row.connect_started, row.connected) == (OPENED, CONNECT_STARTED, CONNECTED)
    assert (row.sent, row.reads, row.closed) == ((SENT,), (READ_1, READ_2), CLOSED)
    assert row.received == RECEIVED


def test_sent_bytes_come_back_as_bytes() -> None:
    row = read_wire_row(wire_lines(LINES), RECEIVED, "w")
    assert row.request == b"POST /v1/completions\r\n\xe9"


def test_text_beyond_latin_1_is_refused() -> None:
    data = wire_lines(LINES).replace("é".encode(), "€".encode())
    assert complaints(data)[0].startswith("01.reads.jsonl:4: sent.bytes_latin1")


def test_steps_and_sleep_of_the_clock_are_shown() -> None:
    end = closed(clock_offset_ns=3_000_000, boottime_minus_monotonic_ns=7)
    row = read_wire_row(wire_lines([*LINES[:-1], end]), RECEIVED, "w")
    assert (row.clock_step_ns, row.suspended_ns) == (2_999_000, 7)


def test_a_failed_connection_is_a_row() -> None:
    end = closed(ended="transport_error", http_status=None, detail="ReadError: refused")
    row = read_wire_row(wire_lines([OPENED, CONNECT_STARTED, end]), b"", "w")
    assert row.connected is None
    assert row.reads == ()


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [OPENED],
        LINES[1:],
        LINES[:-1],
        [OPENED, CONNECTED, SENT, READ_1, READ_2, CLOSED],
        [OPENED, CONNECT_STARTED, SENT, READ_1, READ_2, CLOSED],
        [OPENED, CONNECT_STARTED, CONNECTED, READ_1, SENT, READ_2, CLOSED],
        [*LINES, CLOSED],
        [OPENED, *LINES],
        [*LINES[:2], CONNECTED, *LINES[2:]],
    ],
)
def test_lines_out_of_order_are_refused(lines: list[Line]) -> None:
    assert any("opened, connect_started, then" in text for text in complaints(wire_lines(lines)))


def test_received_bytes_must_be_as_long_as_the_reads() -> None:
    assert complaints(wire_lines(LINES), RECEIVED + b"x") == [
        f"01.reads.jsonl: {len(RECEIVED)} received bytes, the sum of the reads"
    ]


def test_a_monotonic_stamp_that_goes_back_is_refused() -> None:
    late = Read(kernel_ns=1_040, mono_ns=52, length=9)
    assert complaints(wire_lines([*LINES[:4], late, *LINES[5:]])) == [
        "01.reads.jsonl:6: a monotonic stamp of at least 52"
    ]


def test_a_kernel_stamp_that_goes_back_is_a_fact_and_no_fault() -> None:
    early = Read(kernel_ns=1, mono_ns=51, length=READ_2.length)
    row = read_wire_row(wire_lines([*LINES[:5], early, CLOSED]), RECEIVED, "w")
    assert row.reads[1].kernel_ns == 1


@pytest.mark.parametrize("status", [None, 302, 500])
def test_a_complete_row_has_status_200(status: int | None) -> None:
    assert complaints(wire_lines([*LINES[:-1], closed(http_status=status)])) == [
        "01.reads.jsonl: a status that goes with the end 'complete'"
    ]


def test_a_complete_row_has_reads() -> None:
    assert complaints(wire_lines([*LINES[:4], CLOSED]), b"") == [
        "01.reads.jsonl: writes and reads before the end 'complete'"
    ]


def test_every_problem_is_reported_at_once() -> None:
    late = Read(kernel_ns=None, mono_ns=52, length=8)
    assert len(complaints(wire_lines([*LINES[:4], late, *LINES[5:-1], closed(http_status=500)]))) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b'"length":9', b'"length": 9'),
        lambda data: data.replace(b'"length":9', b'"length":9,"length":9'),
        lambda data: data.replace(b'"length":9', b'"length":9.0'),
        lambda data: data.replace(b'"length":9', b'"length":"9"'),
        lambda data: data.replace(b'"length":9', b'"length":0'),
        lambda data: data.replace(b'"length":9', b'"length":9,"more":1'),
        lambda data: data.replace(b'"event":"sent"', b'"event":"told"'),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\n\n"),
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"labctl/wire/1", b"labctl/wire/2"),
        lambda data: data.replace("é".encode(), b"\xe9"),
        lambda data: data.replace("é".encode(), rb"\u00e9"),
    ],
)
def test_any_other_byte_form_is_refused(spoil: Callable[[bytes], bytes]) -> None:
    good = wire_lines(LINES)
    assert spoil(good) != good
    assert complaints(spoil(good))


@given(st.binary(max_size=400))
def test_arbitrary_bytes_raise_nothing_but_malformed_record(data: bytes) -> None:
    assert complaints(data)


@given(st.data())
def test_cutting_the_file_anywhere_is_noticed(data: st.DataObject) -> None:
    good = wire_lines(LINES)
    cut = data.draw(st.integers(0, len(good) - 1))
    assert complaints(good[:cut])
