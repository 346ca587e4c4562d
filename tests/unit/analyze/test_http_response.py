import pytest

from labctl.analyze.http_response import FramingFault, parse_response, read_of_each

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;x=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Trailer: y\r\n\r\n"
)
COUNTED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nbody"


def test_a_chunked_body_keeps_where_each_byte_stood_on_the_wire() -> None:
    response = parse_response(CHUNKED)
    assert (response.status, response.body) == (200, b"abc0123456789")
    ends = response.wire_ends([1, 3, 4, 13])
    assert [CHUNKED[end - 1 : end] for end in ends] == [b"a", b"c", b"0", b"9"]


def test_a_counted_body_keeps_where_each_byte_stood_on_the_wire() -> None:
    response = parse_response(COUNTED)
    assert (response.status, response.body) == (400, b"body")
    assert response.wire_ends([4]) == [len(COUNTED)]


def test_header_names_are_lower_case_and_found_only_once() -> None:
    assert parse_response(CHUNKED).header("content-type") == "text/event-stream"
    assert parse_response(b"HTTP/1.1 204 No Content\r\nA: 1\r\nA: 2\r\n\r\n").header("a") is None


@pytest.mark.parametrize(("end", "read"), [(1, 0), (3, 0), (4, 1), (9, 1), (10, 2)])
def test_the_read_of_a_byte_is_the_one_that_delivered_it(end: int, read: int) -> None:
    assert read_of_each([end], [3, 6, 1]) == [read]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + COUNTED,
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 4\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\ncontent-length: +4\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        COUNTED + b"x",
        CHUNKED + b"x",
        CHUNKED[:-2],
        CHUNKED[:-20],
        CHUNKED[:-40],
        CHUNKED.replace(b"abc\r\n", b"abcd\r\n"),
        CHUNKED.replace(b"3;x=1", b"-3"),
        CHUNKED.replace(b"X-Trailer: y", b"X-Trailer"),
    ],
)
def test_anything_but_one_whole_response_is_a_fault(data: bytes) -> None:
    with pytest.raises(FramingFault):
        parse_response(data)


def test_every_cut_of_a_response_is_a_fault() -> None:
    for data in (CHUNKED, COUNTED):
        for end in range(len(data)):
            with pytest.raises(FramingFault):
                parse_response(data[:end])
