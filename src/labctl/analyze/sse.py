"""Server-sent events from bytes, by the whole grammar; any split of the same bytes gives the same events."""

import re
from dataclasses import dataclass

LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n)")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; `end` is the offset right after the byte that completed it.

    A block that has a name and no data is kept, although browsers drop it: an `event: error` must not get lost.
    """

    name: str
    data: bytes
    end: int


class EventDecoder:
    """Takes bytes in any portions and gives events as they complete; a line ends at CR, LF or CRLF only."""

    def __init__(self) -> None:
        self._pending = b""
        self._consumed = 0
        self._ended_with_cr = False
        self._at_start = True
        self._name: bytes = b""
        self._data: list[bytes] = []

    @property
    def is_inside_event(self) -> bool:
        """Whether bytes have come that belong to no complete event."""
        return bool(self._pending or self._name or self._data)

    def feed(self, portion: bytes) -> list[ServerEvent]:
        """The events that these bytes complete."""
        data = self._pending + portion
        start = self._skipped(data)
        events: list[ServerEvent] = []
        at = start
        for line in LINE.finditer(data, start):
            # The event is complete at the CR of a CRLF: a reader need not wait for the LF.
            self._take(line[1], self._consumed + line.end(1) + 1, events)
            at = line.end()
        if data:
            self._ended_with_cr = at == len(data) and data.endswith(b"\r")
        self._pending = data[at:]
        self._consumed += at
        return events

    def _skipped(self, data: bytes) -> int:
        if self._at_start and data:
            if len(data) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(data):
                return 0
            self._at_start = False
            return len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        return 1 if self._ended_with_cr and data.startswith(b"\n") else 0

    def _take(self, line: bytes, end: int, events: list[ServerEvent]) -> None:
        if not line:
            if self._data or self._name:
                events.append(ServerEvent(self._name.decode("utf-8", "replace"), b"\n".join(self._data), end))
            self._name, self._data = b"", []
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value


def parse_events(body: bytes) -> tuple[list[ServerEvent], bool]:
    """All events of a whole body, and whether it ends between events and not inside one."""
    decoder = EventDecoder()
    events = decoder.feed(body)
    return events, not decoder.is_inside_event
