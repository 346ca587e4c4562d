"""What a server can do to a stream, through a real socket and the client to the analyzer: each is judged right.

Every situation is sent as written, then byte by byte; what was received is then cut anew at every byte and at random
places, and must always mean the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labctl.analyze.payload import RowFault
from labctl.analyze.stream import StreamRow, read_row
from labctl.clock import SystemClock
from labctl.measure.client import RowFiles, RowRequest, measure_row
from labctl.measure.wire import RowLimits
from labctl.records.wire import Ended, Read, WireRow, read_wire_row
from tests.fakes.stream_server import (
    DONE,
    LAST_CHUNK,
    STREAM_HEAD,
    Hold,
    Reset,
    Send,
    Step,
    StreamServer,
    chunk,
    response,
)

LIMITS = RowLimits(connect_s=5, read_s=0.25, total_s=5, drain_s=0.1, response_bytes=1 << 20)
PROMPT = '{"index":0,"text":"a","token_ids":[5],"finish_reason":null,"prompt_token_ids":[1,2]}'


def event(choice: str = "", usage: str = "", model: str = "m") -> bytes:
    told = f',"usage":{usage}' if usage else ""
    return f'data: {{"model":"{model}","choices":[{choice}]{told}}}\n\n'.encode()


def usage(completion: int = 3) -> bytes:
    return event(usage=f'{{"prompt_tokens":2,"completion_tokens":{completion}}}')


FIRST = event(PROMPT)
SECOND = event('{"index":0,"text":"bü","token_ids":[6,7],"finish_reason":"length"}')
UNENDED = event('{"index":0,"text":"bü","token_ids":[6,7],"finish_reason":null}')
HALF = SECOND.index("ü".encode()) + 1
GOOD = (FIRST, SECOND, usage(), DONE)
BODY = b"".join(GOOD)
ERROR = b'data: {"error":{"message":"out of memory","code":500}}\n\n'
EVENT_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
SOUND: frozenset[RowFault] = frozenset()


def chunked(events: Iterable[bytes]) -> tuple[Step, ...]:
    return (Send(STREAM_HEAD), *(Send(chunk(one)) for one in events), Send(LAST_CHUNK))


@dataclass(frozen=True)
class Situation:
    """What a server does, and what must come of it."""

    name: str
    plan: tuple[Step, ...]
    faults: frozenset[RowFault]
    ended: Ended = "complete"
    text: str = "abü"
    models: tuple[str, ...] = ("m",)


def good(name: str, plan: tuple[Step, ...], text: str = "abü", models: tuple[str, ...] = ("m",)) -> Situation:
    return Situation(name, plan, SOUND, text=text, models=models)


def bad(name: str, plan: tuple[Step, ...], *faults: RowFault, ended: Ended = "complete") -> Situation:
    return Situation(name, plan, frozenset(faults), ended)


def broken(name: str, plan: tuple[Step, ...], ended: Ended = "transport_error") -> Situation:
    return bad(name, plan, RowFault.TRANSPORT, RowFault.FRAMING, ended=ended)


def status(line: str, *headers: str) -> Situation:
    plan = (Send(response(line, "application/json", b'{"error":"no"}', *headers)),)
    return bad(f"status {line}", plan, RowFault.STATUS, ended="status_not_200")


SITUATIONS = (
    # sound, however it is written
    good("one event a chunk", chunked(GOOD)),
    good("every event in one read", (Send(STREAM_HEAD + chunk(BODY) + LAST_CHUNK),)),
    good("an event over many chunks", chunked(BODY[at : at + 7] for at in range(0, len(BODY), 7))),
    good("lines end at CR", chunked(one.replace(b"\n", b"\r") for one in GOOD)),
    good("lines end at CRLF", chunked(one.replace(b"\n", b"\r\n") for one in GOOD)),
    good("no space after the colon", chunked(one.replace(b"data: ", b"data:", 1) for one in GOOD)),
    good("comments anywhere", chunked(b": ping\n\n" + one.replace(b"\n", b"\n:\n", 1) for one in GOOD)),
    good("fields that mean nothing here", chunked(b"id: 7\nretry: 1\n" + one for one in GOOD)),
    good("a byte order mark", chunked((b"\xef\xbb\xbf" + FIRST, *GOOD[1:]))),
    good("data over two lines", chunked((FIRST.replace(b',"choices"', b'\ndata: ,"choices"'), *GOOD[1:]))),
    good(
        "separators of Unicode inside a string",
        chunked((FIRST.replace(b'"a"', '"\u2028\u2029\u0085\x7f"'.encode()), *GOOD[1:])),
        text="\u2028\u2029\u0085\x7fbü",
    ),
    good("a character over two chunks", chunked((FIRST, SECOND[:HALF], SECOND[HALF:], *GOOD[2:]))),
    good("a body with a length", (Send(EVENT_HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY),)),
    good("a chunk with an extension", (Send(STREAM_HEAD + b"%x;a=b\r\n" % len(BODY) + BODY + b"\r\n" + LAST_CHUNK),)),
    good("a trailer", (Send(STREAM_HEAD + chunk(BODY) + b"0\r\nx-sum: 1\r\n\r\n"),)),
    good("another model's name", chunked(one.replace(b'"m"', b'"n"') for one in GOOD), models=("n",)),
    # faults in what is said
    bad("an error object with status 200", chunked((FIRST, ERROR, *GOOD[1:])), RowFault.ERROR_EVENT),
    bad("an error object and [DONE], nothing else", chunked((ERROR, DONE)), *(
        RowFault.ERROR_EVENT, RowFault.NO_FINISH, RowFault.NO_USAGE, RowFault.NO_PROMPT_IDS
    )),
    bad("event: error", chunked((FIRST, b"event: error\ndata: gone\n\n", *GOOD[1:])), RowFault.ERROR_EVENT),
    bad("event: error without data", chunked((FIRST, b"event: error\n\n", *GOOD[1:])), RowFault.ERROR_EVENT),
    bad("no finish reason", chunked((FIRST, UNENDED, *GOOD[2:])), RowFault.NO_FINISH),
    bad("no usage", chunked((FIRST, SECOND, DONE)), RowFault.NO_USAGE),
    bad("usage twice", chunked((*GOOD[:3], *GOOD[2:])), RowFault.NO_USAGE),
    bad("no [DONE]", chunked(GOOD[:3]), RowFault.NO_DONE),
    bad("fewer ids than usage says", chunked((FIRST, SECOND, usage(4), DONE)), RowFault.TOKEN_COUNT),
    bad("more ids than usage says", chunked((FIRST, SECOND, usage(2), DONE)), RowFault.TOKEN_COUNT),
    bad("JSON that does not parse", chunked((FIRST, b'data: {"model":\n\n', *GOOD[1:])), RowFault.BAD_JSON),
    bad("NaN for a number", chunked((FIRST, b'data: {"model":"m","choices":[],"x":NaN}\n\n', *GOOD[1:])),
        RowFault.BAD_JSON),
    bad("half a character", chunked((FIRST, b'data: {"model":"\xc3"}\n\n', *GOOD[1:])), RowFault.BAD_JSON),
    bad("bytes after [DONE]", chunked((*GOOD, b"data: {}\n\n")), RowFault.AFTER_END, RowFault.BAD_SHAPE),
    bad("[DONE] twice", chunked((*GOOD, DONE)), RowFault.AFTER_END),
    bad("an event without its end", chunked((*GOOD, b"data: more")), RowFault.CUT_EVENT),
    bad("tokens after the finish reason", chunked((FIRST, SECOND, UNENDED, usage(5), DONE)), RowFault.AFTER_END),
    # faults in how it is sent
    bad("a plain JSON body", (Send(response("200 OK", "application/json", b'{"choices":[]}')),), RowFault.NOT_A_STREAM),
    status("302 Found", "location: http://127.0.0.1:9/"),
    status("307 Temporary Redirect", "location: /elsewhere"),
    status("400 Bad Request"),
    status("429 Too Many Requests", "retry-after: 0"),
    status("500 Internal Server Error"),
    status("503 Service Unavailable", "retry-after: 0"),
    broken("a reset in the stream", (Send(STREAM_HEAD + chunk(FIRST)), Reset())),
    broken("silence in the stream", (Send(STREAM_HEAD + chunk(FIRST)), Hold()), "timeout"),
    broken("nothing at all", ()),
    broken("an early end between chunks", (Send(STREAM_HEAD + chunk(FIRST)),)),
    broken("an early end inside a chunk", (Send(STREAM_HEAD + chunk(BODY)[:-40]),)),
    broken("a chunk size that is no number", (Send(STREAM_HEAD + b"zz\r\n" + BODY + b"\r\n" + LAST_CHUNK),)),
    broken("a chunk longer than its size", (Send(STREAM_HEAD + b"4\r\n" + BODY + b"\r\n" + LAST_CHUNK),)),
    broken("a body shorter than its length", (Send(EVENT_HEAD + b"content-length: 9999\r\n\r\n" + BODY),)),
    broken("no HTTP", (Send(BODY),)),
)  # fmt: skip


def measured(folder: Path, plan: Sequence[Step]) -> WireRow:
    """Send a plan through a real socket; the row as the client left it on disk."""
    files = RowFiles(folder / "01.bin", folder / "01.reads.jsonl")
    with StreamServer(plan) as server:
        request = RowRequest(
            row=1, prompt_id="p", host=server.host, port=server.port, path="/v1/completions", body=b"{}"
        )
        measure_row(request, files, LIMITS, SystemClock())
    assert len(server.peers) == 1  # nothing is ever tried again
    return read_wire_row(files.reads.read_bytes(), files.wire.read_bytes(), "row")


def cut(wire: WireRow, lengths: Sequence[int]) -> WireRow:
    """The same bytes in other reads."""
    start_ns = wire.sent[-1].mono_after_ns
    reads = tuple(Read(kernel_ns=None, mono_ns=start_ns + at, length=length) for at, length in enumerate(lengths))
    return WireRow(**{**dict(wire), "reads": reads})


def said(row: StreamRow) -> tuple[object, ...]:
    """Everything but the stamps."""
    counts = tuple(one.tokens for one in row.events)
    return row.token_ids, counts, row.text, row.finish_reason, row.usage, row.prompt_token_ids, row.models, row.faults


def byte_by_byte(plan: Sequence[Step]) -> list[Step]:
    """The same plan with a write for each byte."""
    steps: list[Step] = []
    for step in plan:
        steps += [Send(bytes([one])) for one in step.data] if isinstance(step, Send) else [step]
    return steps


def test_there_are_as_many_situations_as_were_promised() -> None:
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS) >= 22


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name.replace(" ", "-"))
def test_a_situation_is_judged_right_however_its_bytes_come(situation: Situation, tmp_path: Path) -> None:
    (tmp_path / "bytes").mkdir()
    for place, plan in ((tmp_path, situation.plan), (tmp_path / "bytes", byte_by_byte(situation.plan))):
        wire = measured(place, plan)
        row = read_row(wire)
        assert wire.closed.ended == situation.ended, wire.closed.detail
        assert {fault for fault, _ in row.faults} == situation.faults
        if not situation.faults:
            assert (row.token_ids, row.finish_reason) == ((5, 6, 7), "length")
            assert (row.text, row.models) == (situation.text, situation.models)
    assert said(read_row(cut(wire, [1] * len(wire.received)))) == said(row)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name.replace(" ", "-"))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_cuts_of_a_situation_mean_the_same(situation: Situation, wires: "Wires", data: st.DataObject) -> None:
    wire = wires.of(situation)
    places = data.draw(st.sets(st.integers(1, max(1, len(wire.received) - 1)), max_size=12))
    ends = sorted({*(place for place in places if place < len(wire.received)), len(wire.received)})
    lengths = [end - begin for begin, end in zip([0, *ends], ends, strict=False) if end > begin]
    assert said(read_row(cut(wire, lengths))) == said(read_row(wire))


class Wires:
    """Each situation through the socket, once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, WireRow] = {}

    def of(self, situation: Situation) -> WireRow:
        """The row of one situation."""
        if situation.name not in self._found:
            place = self._folder / str(len(self._found))
            place.mkdir()
            self._found[situation.name] = measured(place, situation.plan)
        return self._found[situation.name]


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Wires:
    return Wires(tmp_path_factory.mktemp("wires"))
