"""One HTTP/1.1 response from its bytes: status, headers, body, and where each body byte stood on the wire."""

import re
from bisect import bisect_right
from dataclasses import dataclass

STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
LENGTH = re.compile(r"[0-9]{1,15}")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
CRLF = b"\r\n"
NO_CONTENT = 204
NOT_MODIFIED = 304
FIRST_FINAL = 200


class FramingFault(ValueError):
    """The bytes are not one whole HTTP/1.1 response; the text says where and why."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole response; `spans` holds, for each run of body bytes, its end in the body and its end on the wire."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    spans: tuple[tuple[int, int], ...]

    def header(self, name: str) -> str | None:
        """The value of a header that stands there once, or None."""
        values = [value for known, value in self.headers if known == name]
        return values[0] if len(values) == 1 else None

    def wire_ends(self, body_ends: list[int]) -> list[int]:
        """The ends on the wire of body positions (exclusive ends, in ascending order)."""
        ends: list[int] = []
        span = 0
        for body_end in body_ends:
            while self.spans[span][0] < body_end:
                span += 1
            span_body_end, span_wire_end = self.spans[span]
            ends.append(span_wire_end - (span_body_end - body_end))
        return ends


def read_of_each(wire_ends: list[int], lengths: list[int]) -> list[int]:
    """The index of the read that delivered the last byte before each end; `lengths` are those of the reads."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return [bisect_right(starts, end - 1) - 1 for end in wire_ends]


def parse_response(data: bytes) -> HttpResponse:
    """Read exactly one final response; nothing may precede, follow or lack.

    Raises:
        FramingFault: at the first deviation.
    """
    status, headers, at = _head(data)
    response = HttpResponse(status, headers, b"", ())
    body, spans, end = _body(data, at, response)
    if end != len(data):
        message = f"{len(data) - end} bytes after the end of the response"
        raise FramingFault(message)
    return HttpResponse(status, headers, body, spans)


def _head(data: bytes) -> tuple[int, tuple[tuple[str, str], ...], int]:
    end = data.find(CRLF + CRLF)
    if end < 0:
        message = "the head has no end"
        raise FramingFault(message)
    first, *rest = data[:end].split(CRLF)
    matched = STATUS_LINE.fullmatch(first)
    if matched is None or int(matched[1]) < FIRST_FINAL:
        message = f"the status line is {first[:60]!r}"
        raise FramingFault(message)
    return int(matched[1]), tuple(_header(line) for line in rest), end + 4


def _header(line: bytes) -> tuple[str, str]:
    matched = HEADER.fullmatch(line)
    if matched is None:
        message = f"a header line is {line[:60]!r}"
        raise FramingFault(message)
    return matched[1].decode("ascii").lower(), matched[2].decode("latin-1")


def _body(data: bytes, at: int, head: HttpResponse) -> tuple[bytes, tuple[tuple[int, int], ...], int]:
    names = [name for name, _ in head.headers]
    coding, length = names.count("transfer-encoding"), names.count("content-length")
    if coding + length > 1:
        message = "more than one of transfer-encoding and content-length"
        raise FramingFault(message)
    if head.status in (NO_CONTENT, NOT_MODIFIED):
        return b"", (), at
    if coding:
        return _chunked(data, at, head.header("transfer-encoding"))
    return _counted(data, at, head.header("content-length"))


def _counted(data: bytes, at: int, length: str | None) -> tuple[bytes, tuple[tuple[int, int], ...], int]:
    if length is None or not LENGTH.fullmatch(length):
        message = f"the length is {length!r}"
        raise FramingFault(message)
    end = at + int(length)
    if end > len(data):
        message = f"the body has {len(data) - at} bytes of {length}"
        raise FramingFault(message)
    return data[at:end], ((end - at, end),), end


def _chunked(data: bytes, at: int, coding: str | None) -> tuple[bytes, tuple[tuple[int, int], ...], int]:
    if coding is None or coding.lower() != "chunked":
        message = f"the transfer coding is {coding!r}"
        raise FramingFault(message)
    parts: list[bytes] = []
    spans: list[tuple[int, int]] = []
    length = 0
    while True:
        size, at = _chunk_size(data, at)
        if size == 0:
            return b"".join(parts), tuple(spans), _trailer_end(data, at)
        end = at + size
        if data[end : end + 2] != CRLF:
            message = f"the chunk at byte {at} does not end after {size} bytes"
            raise FramingFault(message)
        parts.append(data[at:end])
        length += size
        spans.append((length, end))
        at = end + 2


def _chunk_size(data: bytes, at: int) -> tuple[int, int]:
    end = data.find(CRLF, at)
    matched = CHUNK_SIZE.fullmatch(data[at:end]) if end >= 0 else None
    if matched is None:
        message = f"no chunk size at byte {at}: the body is cut or malformed"
        raise FramingFault(message)
    return int(matched[1], 16), end + 2


def _trailer_end(data: bytes, at: int) -> int:
    while True:
        end = data.find(CRLF, at)
        if end < 0:
            message = "the last chunk has no end"
            raise FramingFault(message)
        if end == at:
            return end + 2
        _header(data[at:end])
        at = end + 2
