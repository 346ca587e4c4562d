import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.analyze.sse import EventDecoder, ServerEvent, parse_events

PIECES = [
    b"data: one", b"data:two", b"data", b"data:  three", b"event: error", b"event:", b"id: 4", b"retry: 10", b": note",
    b"", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n",
    "dáta: ü\u2028\u0085".encode(), "data: ü\u2028\u0085".encode(),
    b"\xef\xbb\xbf", b"\xff", b"data: [DONE]",
]  # fmt: skip


def data_of(body: bytes) -> list[bytes]:
    return [event.data for event in parse_events(body)[0]]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_line_ends_at_cr_lf_or_crlf(end: bytes) -> None:
    body = b"data: a" + end + b"data:b" + end + end + b"data: c" + end + end
    assert data_of(body) == [b"a\nb", b"c"]


def test_unicode_separators_are_no_line_ends() -> None:
    text = "a\u2028b\u0085c\x0bd"
    assert data_of(f"data: {text}\n\n".encode()) == [text.encode()]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert data_of(b"data:  a\n\ndata:\tb\n\n") == [b" a", b"\tb"]


def test_comments_and_other_fields_are_skipped() -> None:
    assert data_of(b": hello\nid: 1\nretry: 5\nfoo: bar\ndata: a\n: bye\n\n: alone\n\n") == [b"a"]


def test_a_data_line_without_colon_is_an_empty_line_of_data() -> None:
    assert data_of(b"data\n\ndata\ndata\n\n") == [b"", b"\n"]


def test_a_named_block_without_data_is_kept() -> None:
    assert parse_events(b"event: error\n\n")[0] == [ServerEvent("error", b"", 14)]


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    assert data_of(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [b"a"]


def test_a_body_that_ends_inside_an_event_says_so() -> None:
    assert parse_events(b"data: a\n\n") == ([ServerEvent("", b"a", 9)], True)
    assert not parse_events(b"data: a\n")[1]
    assert not parse_events(b"data: a\n\nda")[1]


def test_the_end_of_an_event_is_the_first_byte_that_completes_it() -> None:
    body = b"data: a\r\n\r\ndata: b\n\n"
    assert [event.end for event in parse_events(body)[0]] == [10, len(body)]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.data())
def test_any_split_gives_the_same_events(pieces: list[bytes], data: st.DataObject) -> None:
    body = b"".join(pieces)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)))))
    decoder = EventDecoder()
    portions = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    events = [event for portion in portions for event in decoder.feed(portion)]
    assert (events, not decoder.is_inside_event) == parse_events(body)


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_byte_by_byte_gives_the_same_events(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    decoder = EventDecoder()
    events = [event for at in range(len(body)) for event in decoder.feed(body[at : at + 1])]
    assert (events, not decoder.is_inside_event) == parse_events(body)
