"""One row from its wire facts: tokens with arrival stamps, text, usage, and every reason why it may not count."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from labctl.analyze.http_response import FramingFault, HttpResponse, parse_response, read_of_each
from labctl.analyze.payload import Answer, RowFault, Usage
from labctl.analyze.sse import parse_events
from labctl.analyze.stamp_range import CLOCK_TOLERANCE_NS, misplaced_stamps
from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from labctl.records.wire import HTTP_OK, WireRow

TIMING_FAULTS = frozenset({RowFault.CLOCK_STEP, RowFault.SUSPENDED, RowFault.STAMP_ORDER, RowFault.STAMP_RANGE})


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One event that carried tokens."""

    arrival_ns: int
    tokens: int
    is_coalesced: bool
    """Whether its read held another event with tokens: its stamp is then that of the last."""


@dataclass(frozen=True, slots=True)
class RowClock:
    """Stamps of one row beside the tokens', all on the one clock that `source` names."""

    source: Literal["kernel", "monotonic"]
    connect_started_ns: int
    sent_ns: int
    first_byte_ns: int
    last_byte_ns: int


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One row, as far as its bytes tell."""

    row: int
    prompt_id: str
    token_ids: tuple[int, ...]
    events: tuple[TokenEvent, ...]
    text: str
    finish_reason: str | None
    usage: Usage | None
    prompt_token_ids: tuple[int, ...] | None
    models: tuple[str, ...]
    clock: RowClock | None
    faults: tuple[tuple[RowFault, str], ...]

    @property
    def text_sha256(self) -> str:
        """The digest of the text in UTF-8."""
        return sha256_hex(self.text.encode("utf-8"))

    @property
    def prompt_ids_sha256(self) -> str | None:
        """The digest of the canonical JSON list of prompt token ids."""
        return None if self.prompt_token_ids is None else _ids_sha256(self.prompt_token_ids)

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete, whatever its stamps say."""
        return all(fault in TIMING_FAULTS for fault, _ in self.faults)

    def arrival_ns(self, token: int) -> int:
        """The arrival of a token (0-based)."""
        return self.event_of(token).arrival_ns

    def event_of(self, token: int) -> TokenEvent:
        """The event that brought a token (0-based)."""
        last = -1
        for event in self.events:
            last += event.tokens
            if token <= last:
                return event
        message = f"token {token} of {last + 1}"
        raise IndexError(message)


@lru_cache(maxsize=4096)  # every start of a run is asked the same prompts
def _ids_sha256(token_ids: tuple[int, ...]) -> str:
    return sha256_hex(canonical_json(list(token_ids)))


def read_row(wire: WireRow) -> StreamRow:
    """Parse one row again from its bytes; faults are in the row, never raised."""
    faults = _wire_faults(wire)
    try:
        response = parse_response(wire.received)
    except FramingFault as error:
        return _row(wire, Answer(), (), [*faults, (RowFault.FRAMING, str(error))])
    if head_faults := _head_faults(response):
        return _row(wire, Answer(), (), [*faults, *head_faults])
    answer, events, more = _read_body(wire, response)
    return _row(wire, answer, events, [*faults, *more])


def _read_body(
    wire: WireRow, response: HttpResponse
) -> tuple[Answer, tuple[TokenEvent, ...], list[tuple[RowFault, str]]]:
    events, is_whole = parse_events(response.body)
    answer = Answer()
    for index, event in enumerate(events):
        answer.take(index, event)
    faults = [] if is_whole else [(RowFault.CUT_EVENT, "the body ends inside an event")]
    ends = response.wire_ends([events[index].end for index, _ in answer.token_counts])
    reads = read_of_each(ends, [read.length for read in wire.reads])
    stamps = _stamps(wire)
    token_events = tuple(
        TokenEvent(stamps[read], tokens, _is_shared(reads, place))
        for place, (read, (_, tokens)) in enumerate(zip(reads, answer.token_counts, strict=True))
    )
    return answer, token_events, [*faults, *answer.faults, *answer.closing_faults()]


def _is_shared(reads: list[int], place: int) -> bool:
    return reads[place] in (*reads[max(place - 1, 0) : place], *reads[place + 1 : place + 2])


def _row(
    wire: WireRow, answer: Answer, events: tuple[TokenEvent, ...], faults: list[tuple[RowFault, str]]
) -> StreamRow:
    return StreamRow(
        row=wire.opened.row,
        prompt_id=wire.opened.prompt_id,
        token_ids=tuple(answer.token_ids),
        events=events,
        text="".join(answer.text),
        finish_reason=answer.finish_reasons[0] if answer.finish_reasons else None,
        usage=answer.usages[0] if answer.usages else None,
        prompt_token_ids=answer.prompt_token_ids,
        models=tuple(answer.models),
        clock=_clock(wire),
        faults=tuple(faults),
    )


def _has_kernel_stamps(wire: WireRow) -> bool:
    return all(read.kernel_ns is not None for read in wire.reads)


def _stamps(wire: WireRow) -> list[int]:
    kernel = [read.kernel_ns for read in wire.reads if read.kernel_ns is not None]
    return kernel if len(kernel) == len(wire.reads) else [read.mono_ns for read in wire.reads]


def _clock(wire: WireRow) -> RowClock | None:
    if not wire.reads or not wire.sent:
        return None
    stamps, last = _stamps(wire), wire.sent[-1]
    if _has_kernel_stamps(wire):
        return RowClock("kernel", wire.connect_started.realtime_ns, last.realtime_ns, stamps[0], stamps[-1])
    return RowClock("monotonic", wire.connect_started.mono_ns, last.mono_before_ns, stamps[0], stamps[-1])


def _wire_faults(wire: WireRow) -> list[tuple[RowFault, str]]:
    faults: list[tuple[RowFault, str]] = []
    if wire.closed.ended not in {"complete", "status_not_200"}:
        faults.append((RowFault.TRANSPORT, f"{wire.closed.ended}: {wire.closed.detail}"))
    if abs(wire.clock_step_ns) > CLOCK_TOLERANCE_NS:
        faults.append((RowFault.CLOCK_STEP, f"CLOCK_REALTIME moved by {wire.clock_step_ns} ns"))
    if abs(wire.suspended_ns) > CLOCK_TOLERANCE_NS:
        faults.append((RowFault.SUSPENDED, f"CLOCK_BOOTTIME moved by {wire.suspended_ns} ns"))
    stamps = _stamps(wire)
    if any(later < earlier for earlier, later in pairwise(stamps)):
        faults.append((RowFault.STAMP_ORDER, "a later read has an earlier stamp"))
    faults += [(RowFault.STAMP_RANGE, told) for told in misplaced_stamps(wire)][:1]
    return faults


def _head_faults(response: HttpResponse) -> list[tuple[RowFault, str]]:
    if response.status != HTTP_OK:
        return [(RowFault.STATUS, f"status {response.status}")]
    content_type = response.header("content-type") or "none"
    if content_type.partition(";")[0].strip().lower() != "text/event-stream":
        return [(RowFault.NOT_A_STREAM, f"content type {content_type}")]
    return []
