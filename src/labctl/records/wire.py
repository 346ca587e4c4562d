"""What one request left behind: its received bytes, and one line for each fact about how they came.

`NN.bin` holds the received bytes as they came. `NN.reads.jsonl` holds canonical JSON lines: `opened`, `connect_started`
and, unless the connection failed, `connected`, `sent` once for each write, `read` once for each read; `closed` ends the
row. Nothing in them is a result.
"""

import re
from itertools import pairwise
from typing import Annotated, Literal, assert_never

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, TypeAdapter

from labctl.codes import Code
from labctl.errors import MalformedRecord, Problem
from labctl.frozen import FrozenModel, SafeName
from labctl.records.lines import parse_lines

ORDER = re.compile(r"OS(CW*R*)?X")
LETTERS = {"opened": "O", "connect_started": "S", "connected": "C", "sent": "W", "read": "R", "closed": "X"}
HTTP_OK = 200
RESTORE = "restore the files as they were written"

Port = Annotated[int, Field(ge=1, le=65535)]
Ended = Literal["complete", "status_not_200", "transport_error", "timeout", "over_limit", "interrupted"]


def _is_latin1(text: str) -> str:
    text.encode("latin-1")
    return text


class RowOpened(FrozenModel):
    """A row begins; nothing is connected yet."""

    event: Literal["opened"] = "opened"
    schema_id: Literal["labctl/wire/1"] = "labctl/wire/1"
    """The format of this file."""
    row: PositiveInt
    """The place of the request in its start, from 1."""
    prompt_id: SafeName
    """The prompt's id in the suite."""
    host: str
    """The literal address that was asked for."""
    port: Port
    """The port that was asked for."""
    stamps: Literal["kernel_software_rx", "none"]
    """Which receive stamps were asked of the system; what it gave stands in each read."""
    clock_offset_ns: int
    """CLOCK_REALTIME minus CLOCK_MONOTONIC before the row."""
    boottime_minus_monotonic_ns: int
    """CLOCK_BOOTTIME minus CLOCK_MONOTONIC before the row; it grows when the machine sleeps."""


class ConnectStarted(FrozenModel):
    """Right before the connection is asked for."""

    event: Literal["connect_started"] = "connect_started"
    mono_ns: NonNegativeInt
    """CLOCK_MONOTONIC."""
    realtime_ns: NonNegativeInt
    """CLOCK_REALTIME."""


class Connected(FrozenModel):
    """Right after the connection stands."""

    event: Literal["connected"] = "connected"
    mono_ns: NonNegativeInt
    """CLOCK_MONOTONIC."""
    realtime_ns: NonNegativeInt
    """CLOCK_REALTIME."""
    local_port: Port
    """Our end; two rows never share a connection."""
    peer_address: str
    """The other end as `getpeername` gives it."""
    peer_port: Port
    """The other end as `getpeername` gives it."""


class Sent(FrozenModel):
    """One write that the kernel took."""

    event: Literal["sent"] = "sent"
    mono_before_ns: NonNegativeInt
    """CLOCK_MONOTONIC right before the write."""
    mono_after_ns: NonNegativeInt
    """CLOCK_MONOTONIC right after the write."""
    realtime_ns: NonNegativeInt
    """CLOCK_REALTIME right before the write; compare it with kernel stamps."""
    bytes_latin1: Annotated[str, Field(min_length=1), AfterValidator(_is_latin1)]
    """The bytes that were taken, one character a byte."""


class Read(FrozenModel):
    """One read that gave bytes."""

    event: Literal["read"] = "read"
    kernel_ns: PositiveInt | None
    """The kernel's receive stamp (CLOCK_REALTIME) of the last segment in this read, where it gave one."""
    mono_ns: NonNegativeInt
    """CLOCK_MONOTONIC right after the read."""
    length: PositiveInt
    """How many bytes; reads cut the received bytes in order."""


class RowClosed(FrozenModel):
    """The row is over."""

    event: Literal["closed"] = "closed"
    mono_ns: NonNegativeInt
    """CLOCK_MONOTONIC."""
    clock_offset_ns: int
    """CLOCK_REALTIME minus CLOCK_MONOTONIC after the row."""
    boottime_minus_monotonic_ns: int
    """CLOCK_BOOTTIME minus CLOCK_MONOTONIC after the row."""
    ended: Ended
    """How the exchange ended as the transport saw it; `complete` says nothing about the content."""
    detail: str | None
    """What the transport said, where it did not end well."""
    http_status: int | None
    """The status as the client library read it; for information."""
    peer_closed: bool
    """Whether the server had closed its end when we closed ours."""
    gc_collections: NonNegativeInt
    """Garbage collections of the measuring process during the row."""


Line = RowOpened | ConnectStarted | Connected | Sent | Read | RowClosed
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="event")])


class WireRow(FrozenModel):
    """One row, verified in form."""

    opened: RowOpened
    """The first line."""
    connect_started: ConnectStarted
    """The second line."""
    connected: Connected | None
    """Absent when there was no connection."""
    sent: tuple[Sent, ...]
    """Writes in order."""
    reads: tuple[Read, ...]
    """Reads in order."""
    closed: RowClosed
    """The last line."""
    received: bytes
    """All received bytes; as long as the reads say."""

    @property
    def request(self) -> bytes:
        """All bytes that were sent."""
        return "".join(write.bytes_latin1 for write in self.sent).encode("latin-1")

    @property
    def clock_step_ns(self) -> int:
        """How far CLOCK_REALTIME moved against CLOCK_MONOTONIC during the row."""
        return self.closed.clock_offset_ns - self.opened.clock_offset_ns

    @property
    def suspended_ns(self) -> int:
        """How long the machine slept during the row."""
        return self.closed.boottime_minus_monotonic_ns - self.opened.boottime_minus_monotonic_ns


def wire_lines(lines: list[Line]) -> bytes:
    """The bytes of a `reads.jsonl` file."""
    return b"".join(line.canonical() for line in lines)


def read_wire_row(reads_bytes: bytes, wire_bytes: bytes, where: str) -> WireRow:
    """Read one row from the bytes of its two files.

    Kernel stamps may go back here: a step of the wall clock is a fact about the host, which `clock_step_ns` shows.

    Raises:
        MalformedRecord: with every problem of the two files.
    """
    lines, problems = parse_lines(_LINE, reads_bytes, where)
    if not problems:
        problems = [*_order_problems(lines, where), *_length_problems(lines, wire_bytes, where)]
        problems += [*_stamp_problems(lines, where), *_ending_problems(lines, where)]
    if problems:
        raise MalformedRecord(problems)
    return _row(lines, wire_bytes)


def _row(lines: list[Line], received: bytes) -> WireRow:
    return WireRow(
        opened=next(line for line in lines if isinstance(line, RowOpened)),
        connect_started=next(line for line in lines if isinstance(line, ConnectStarted)),
        connected=next((line for line in lines if isinstance(line, Connected)), None),
        sent=tuple(line for line in lines if isinstance(line, Sent)),
        reads=tuple(line for line in lines if isinstance(line, Read)),
        closed=next(line for line in lines if isinstance(line, RowClosed)),
        received=received,
    )


def _order_problems(lines: list[Line], where: str) -> list[Problem]:
    letters = "".join(LETTERS[line.event] for line in lines)
    if ORDER.fullmatch(letters):
        return []
    wanted = "opened, connect_started, then connected, sent and read lines, then closed"
    return [_problem(where, wanted, ", ".join(line.event for line in lines)[:160] or "no line")]


def _length_problems(lines: list[Line], received: bytes, where: str) -> list[Problem]:
    total = sum(line.length for line in lines if isinstance(line, Read))
    if total == len(received):
        return []
    return [_problem(where, f"{total} received bytes, the sum of the reads", f"{len(received)} bytes")]


def _stamp_problems(lines: list[Line], where: str) -> list[Problem]:
    stamps = [stamp for number, line in enumerate(lines, start=1) for stamp in _monotonic_stamps(line, number)]
    return [
        _problem(f"{where}:{later[0]}", f"a monotonic stamp of at least {earlier[1]}", str(later[1]))
        for earlier, later in pairwise(stamps)
        if later[1] < earlier[1]
    ]


def _monotonic_stamps(line: Line, number: int) -> list[tuple[int, int]]:
    match line:
        case RowOpened():
            return []
        case Sent():
            return [(number, line.mono_before_ns), (number, line.mono_after_ns)]
        case ConnectStarted() | Connected() | Read() | RowClosed():
            return [(number, line.mono_ns)]
        case _:
            assert_never(line)


def _ending_problems(lines: list[Line], where: str) -> list[Problem]:
    ends = [line for line in lines if isinstance(line, RowClosed) and line.ended in {"complete", "status_not_200"}]
    present = {line.event for line in lines}
    problems = []
    for end in ends:
        if not {"sent", "read"} <= present:
            problems.append(
                _problem(where, f"writes and reads before the end {end.ended!r}", ", ".join(sorted(present)))
            )
        if end.http_status is None or (end.http_status == HTTP_OK) != (end.ended == "complete"):
            problems.append(_problem(where, f"a status that goes with the end {end.ended!r}", str(end.http_status)))
    return problems


def _problem(where: str, expected: str, got: str) -> Problem:
    return Problem(Code.RECORD_FORM, where, expected, got, RESTORE)
