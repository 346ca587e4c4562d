import json

import pytest

from labctl.analyze.payload import RowFault, Usage
from labctl.analyze.stream import StreamRow, read_row
from labctl.records.wire import ConnectStarted, Ended, Read, RowClosed, RowOpened, Sent, WireRow

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
LAST = b"0\r\n\r\n"
OFFSET_NS = 50_000_000


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def token(ids: list[int], text: str = "x", finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "text": text, "token_ids": ids, "finish_reason": finish, **more}
    return event({"model": "m", "choices": [choice]})


def usage(prompt: int = 2, completion: int = 3, **more: object) -> bytes:
    told = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
    return event({"model": "m", "choices": [], "usage": told})


GOOD = [token([5], "a", prompt_token_ids=[1, 2]), token([6, 7], "bü", "length"), usage(), DONE]


def wire_row(
    portions: list[bytes],
    *,
    ended: Ended = "complete",
    kernel: bool = True,
    stamps: list[int] | None = None,
    moved_ns: tuple[int, int] = (0, 0),
) -> WireRow:
    times = stamps or [1000 * (place + 1) for place in range(len(portions))]
    reads = tuple(
        Read(kernel_ns=OFFSET_NS + at if kernel else None, mono_ns=at, length=len(portion))
        for at, portion in zip(times, portions, strict=True)
    )
    return WireRow(
        opened=RowOpened(
            row=1, prompt_id="p", host="127.0.0.1", port=1, stamps="kernel_software_rx", clock_offset_ns=OFFSET_NS,
            boottime_minus_monotonic_ns=0,
        ),
        connect_started=ConnectStarted(mono_ns=1, realtime_ns=50_000_001),
        connected=None,
        sent=(
            Sent(mono_before_ns=2, mono_after_ns=3, realtime_ns=50_000_002, bytes_latin1="head"),
            Sent(mono_before_ns=4, mono_after_ns=5, realtime_ns=50_000_004, bytes_latin1="body"),
        ),
        reads=reads,
        closed=RowClosed(
            mono_ns=9_000_000, clock_offset_ns=OFFSET_NS + moved_ns[0], boottime_minus_monotonic_ns=moved_ns[1],
            ended=ended, detail="why", http_status=200, peer_closed=True, gc_collections=0,
        ),
        received=b"".join(portions),
    )  # fmt: skip


def row_of(events: list[bytes]) -> StreamRow:
    return read_row(wire_row([HEAD, *map(chunk, events), LAST]))


def faults_of(events: list[bytes]) -> set[RowFault]:
    return {fault for fault, _ in row_of(events).faults}


def test_a_whole_row_gives_ids_text_usage_and_stamps() -> None:
    row = row_of(GOOD)
    assert (row.token_ids, row.text, row.finish_reason, row.faults) == ((5, 6, 7), "abü", "length", ())
    assert (row.usage, row.prompt_token_ids, row.models) == (Usage(2, 3, None), (1, 2), ("m",))
    assert [(one.arrival_ns, one.tokens) for one in row.events] == [(50_002_000, 1), (50_003_000, 2)]
    assert [row.arrival_ns(place) for place in range(3)] == [50_002_000, 50_003_000, 50_003_000]
    assert row.clock is not None
    assert (row.clock.source, row.clock.sent_ns, row.clock.connect_started_ns) == ("kernel", 50_000_004, 50_000_001)


def test_a_chat_stream_gives_the_same() -> None:
    first = event(
        {
            "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}],
            "prompt_token_ids": [1, 2],
        }
    )
    rest = [
        event(
            {
                "model": "m",
                "choices": [{"index": 0, "delta": {"content": text}, "token_ids": ids, "finish_reason": end}],
            }
        )
        for text, ids, end in (("a", [5], None), ("b", [6, 7], "stop"))
    ]
    row = row_of([first, *rest, usage(prompt_tokens_details={"cached_tokens": 0}), DONE])
    assert (row.token_ids, row.text, row.finish_reason, row.faults) == ((5, 6, 7), "ab", "stop", ())
    assert (row.usage, row.prompt_token_ids) == (Usage(2, 3, 0), (1, 2))


def test_an_event_over_many_reads_gets_the_stamp_of_the_read_that_completed_it() -> None:
    body = chunk(GOOD[0])
    portions = [HEAD + body[:10], body[10:-4], body[-4:], *map(chunk, GOOD[1:]), LAST]
    assert read_row(wire_row(portions)).events[0].arrival_ns == 50_003_000


def test_events_that_share_a_read_are_coalesced() -> None:
    portions = [HEAD, chunk(GOOD[0]) + chunk(GOOD[1]), chunk(GOOD[2]) + chunk(DONE) + LAST]
    assert [one.is_coalesced for one in read_row(wire_row(portions)).events] == [True, True]
    assert [one.is_coalesced for one in row_of(GOOD).events] == [False, False]


def test_without_kernel_stamps_the_monotonic_clock_is_used_and_said() -> None:
    row = read_row(wire_row([HEAD, *map(chunk, GOOD), LAST], kernel=False))
    assert row.clock is not None
    assert (row.clock.source, row.clock.sent_ns, row.events[0].arrival_ns) == ("monotonic", 4, 2000)


def test_one_read_without_a_kernel_stamp_makes_the_row_monotonic() -> None:
    wire = wire_row([HEAD, *map(chunk, GOOD), LAST])
    spoiled = wire.reads[0].model_dump() | {"kernel_ns": None}
    mixed = WireRow(**{**dict(wire), "reads": (Read(**spoiled), *wire.reads[1:])})
    assert {one.arrival_ns for one in read_row(mixed).events} == {2000, 3000}


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([GOOD[0], event({"error": {"message": "no"}}), *GOOD[1:]], RowFault.ERROR_EVENT),
        ([*GOOD[:3], b"event: error\ndata: x\n\n", DONE], RowFault.ERROR_EVENT),
        ([*GOOD[:3], b"event: error\n\n", DONE], RowFault.ERROR_EVENT),
        ([GOOD[0], token([6, 7]), *GOOD[2:]], RowFault.NO_FINISH),
        ([GOOD[0], GOOD[1], token([], "", "stop"), *GOOD[2:]], RowFault.NO_FINISH),
        ([*GOOD[:2], DONE], RowFault.NO_USAGE),
        ([*GOOD[:3], usage(), DONE], RowFault.NO_USAGE),
        (GOOD[:3], RowFault.NO_DONE),
        ([*GOOD[:2], usage(completion=4), DONE], RowFault.TOKEN_COUNT),
        ([*GOOD[:2], usage(prompt=3), DONE], RowFault.TOKEN_COUNT),
        ([token([], "", "stop", prompt_token_ids=[1, 2]), usage(completion=0), DONE], RowFault.TOKEN_COUNT),
        ([GOOD[0], b"data: {\n\n", *GOOD[1:]], RowFault.BAD_JSON),
        ([GOOD[0], b'data: {"model": "\xff"}\n\n', *GOOD[1:]], RowFault.BAD_JSON),
        ([GOOD[0], event([1]), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], event({"choices": []}), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], event({"model": "m", "choices": [{"index": 1, "text": "x"}]}), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], event({"model": "m", "choices": [{}, {}]}), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], token([True]), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], token([-1]), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], event({"model": "m", "choices": [{"index": 0, "delta": 3}]}), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([GOOD[0], token([], prompt_token_ids=[1, 2]), *GOOD[1:]], RowFault.BAD_SHAPE),
        ([*GOOD[:2], event({"model": "m", "choices": [], "usage": 3}), *GOOD[2:]], RowFault.BAD_SHAPE),
        ([*GOOD[:2], usage(completion=-3), *GOOD[2:]], RowFault.BAD_SHAPE),
        ([*GOOD[:2], token([8]), usage(completion=4), DONE], RowFault.AFTER_END),
        ([*GOOD, token([], "")], RowFault.AFTER_END),
        ([token([5], "a"), *GOOD[1:]], RowFault.NO_PROMPT_IDS),
        ([*GOOD, b"data: cut"], RowFault.CUT_EVENT),
    ],
)
def test_a_spoiled_stream_has_exactly_its_fault(events: list[bytes], fault: RowFault) -> None:
    assert faults_of(events) == {fault}


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", RowFault.STATUS),
        (b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", RowFault.STATUS),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}", RowFault.NOT_A_STREAM),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", RowFault.NOT_A_STREAM),
        (HEAD + chunk(GOOD[0]), RowFault.FRAMING),
    ],
)
def test_a_response_that_is_no_whole_stream_has_exactly_its_fault(response: bytes, fault: RowFault) -> None:
    row = read_row(wire_row([response]))
    assert [one for one, _ in row.faults] == [fault]
    assert not row.is_whole


def test_a_row_that_the_transport_ended_early_is_a_fault_even_if_its_bytes_are_whole() -> None:
    row = read_row(wire_row([HEAD, *map(chunk, GOOD), LAST], ended="timeout"))
    assert row.faults == ((RowFault.TRANSPORT, "timeout: why"),)


@pytest.mark.parametrize(
    ("wire", "fault"),
    [
        (wire_row([HEAD, *map(chunk, GOOD), LAST], moved_ns=(1_000_001, 0)), RowFault.CLOCK_STEP),
        (wire_row([HEAD, *map(chunk, GOOD), LAST], moved_ns=(-1_000_001, 0)), RowFault.CLOCK_STEP),
        (wire_row([HEAD, *map(chunk, GOOD), LAST], moved_ns=(0, 5_000_000)), RowFault.SUSPENDED),
        (wire_row([HEAD, *map(chunk, GOOD), LAST], stamps=[1, 5, 4, 6, 7, 8]), RowFault.STAMP_ORDER),
    ],
)
def test_stamps_that_cannot_be_trusted_are_a_fault_and_leave_the_answer_whole(wire: WireRow, fault: RowFault) -> None:
    row = read_row(wire)
    assert [one for one, _ in row.faults] == [fault]
    assert row.is_whole


MS = 1_000_000
FAR = [1000 * MS, 1010 * MS, 1020 * MS, 1100 * MS, 1110 * MS, 1120 * MS]


@pytest.mark.parametrize(
    ("number", "arrived_ns", "is_possible"),
    [
        (2, 1020 * MS + 1 * MS, True),
        (2, 1020 * MS + 1 * MS + 1, False),
        (3, 1020 * MS, True),
        (3, 1020 * MS - 25 * MS - 1, False),  # before the read before it was stamped, by the kernel too
        (4, 1100 * MS - 25 * MS, False),
        (0, 1 * MS, True),
        (0, -2 * MS, False),
    ],
)
def test_a_stamp_lies_between_the_read_before_and_its_own(number: int, arrived_ns: int, is_possible: bool) -> None:
    wire = wire_row([HEAD, *map(chunk, GOOD), LAST], stamps=FAR)
    moved = wire.reads[number].model_copy(update={"kernel_ns": OFFSET_NS + arrived_ns})
    row = read_row(wire.model_copy(update={"reads": (*wire.reads[:number], moved, *wire.reads[number + 1 :])}))
    assert (row.faults == ()) is is_possible
    assert row.is_whole


def test_kernel_stamps_that_were_all_scaled_are_a_fault_although_they_are_in_order() -> None:
    wire = wire_row([HEAD, *map(chunk, GOOD), LAST], stamps=FAR)
    half = [read.model_copy(update={"kernel_ns": OFFSET_NS + read.mono_ns - 65 * MS}) for read in wire.reads[3:]]
    row = read_row(wire.model_copy(update={"reads": (*wire.reads[:3], *half)}))
    assert {fault for fault, _ in row.faults} == {RowFault.STAMP_RANGE}


@pytest.mark.parametrize("realtime_ns", [OFFSET_NS + 2 + 2 * MS, OFFSET_NS + 2 - 26 * MS])
def test_a_wall_clock_that_was_looked_at_elsewhere_is_a_fault(realtime_ns: int) -> None:
    wire = wire_row([HEAD, *map(chunk, GOOD), LAST])
    sent = (wire.sent[0].model_copy(update={"realtime_ns": realtime_ns}), wire.sent[1])
    row = read_row(wire.model_copy(update={"sent": sent}))
    assert {fault for fault, _ in row.faults} == {RowFault.STAMP_RANGE}


def test_a_step_of_one_millisecond_is_tolerated() -> None:
    assert read_row(wire_row([HEAD, *map(chunk, GOOD), LAST], moved_ns=(1_000_000, 0))).faults == ()


def test_a_row_without_a_byte_has_no_clock() -> None:
    row = read_row(wire_row([], ended="transport_error"))
    assert row.clock is None
    assert {fault for fault, _ in row.faults} == {RowFault.TRANSPORT, RowFault.FRAMING}


def test_a_token_that_is_not_there_has_no_arrival() -> None:
    with pytest.raises(IndexError):
        row_of(GOOD).arrival_ns(3)
