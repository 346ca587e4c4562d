"""A scripted HTTP server on a real loopback socket: for each connection, in order, which bytes it sends and when.

```
with StreamServer(plan_of_first_connection, plan_of_second_connection) as server:
    ...connect to server.host, server.port...
server.requests       the request bytes of each connection
server.sends          for each connection, one `Sending` for each `Send` that was carried out
server.peers          the client's port of each connection
```

A plan is a list of steps: `Send(data)` writes bytes, `Pause(seconds)` waits, `Reset()` ends the connection with a TCP
reset, `Hold()` keeps it open until the server stops. After the last step the connection is closed. Connections beyond
the plans are accepted, noted and closed at once. `response(...)`, `event(...)` and `chunk(...)` make the bytes.
"""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, assert_never

LINGER_ZERO = struct.pack("ii", 1, 0)
DONE = b"data: [DONE]\n\n"
LAST_CHUNK = b"0\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Send:
    """Write these bytes with one call."""

    data: bytes


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """End the connection with a TCP reset."""


@dataclass(frozen=True)
class Hold:
    """Keep the connection open until the server stops."""


Step = Send | Pause | Reset | Hold


@dataclass(frozen=True)
class Sending:
    """One write, between two readings of CLOCK_REALTIME."""

    before_ns: int
    after_ns: int
    length: int


class StreamServer:
    """Serves one plan for each connection, in order, in a thread of its own."""

    def __init__(self, *plans: Sequence[Step]) -> None:
        self._plans = plans
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self.host: str = "127.0.0.1"
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self.sends: list[list[Sending]] = []
        self.peers: list[int] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            with connection:
                self.peers.append(peer[1])
                self.sends.append([])
                number = len(self.peers) - 1
                if number < len(self._plans):
                    self._follow(connection, self._plans[number])

    def _follow(self, connection: socket.socket, plan: Sequence[Step]) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests.append(_whole_request(connection))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for step in plan:
                self._take(connection, step)

    def _take(self, connection: socket.socket, step: Step) -> None:
        match step:
            case Send(data):
                before_ns = time.time_ns()
                connection.sendall(data)
                self.sends[-1].append(Sending(before_ns, time.time_ns(), len(data)))
            case Pause(seconds):
                self._stopping.wait(seconds)
            case Reset():
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
                connection.close()
            case Hold():
                self._stopping.wait()
            case _:
                assert_never(step)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value: object) -> bytes:
    """One server-sent event with a JSON value, as one chunk."""
    return chunk(b"data: " + json.dumps(value).encode() + b"\n\n")


def response(status: str, content_type: str, body: bytes, *headers: str) -> bytes:
    """A whole response with a length."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(body)}", *headers]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def token_stream(tokens: int, pause_s: float = 0.0) -> Iterator[Step]:
    """A complete stream of one event a token, in one write each, `pause_s` apart."""
    yield Send(STREAM_HEAD)
    for number in range(tokens):
        yield Pause(pause_s)
        yield Send(event({"choices": [{"index": 0, "text": "x", "token_ids": [number]}]}))
    yield Pause(pause_s)
    yield Send(chunk(DONE) + LAST_CHUNK)


def _whole_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data or len(data) < _request_length(data):
        piece = connection.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data


def _request_length(data: bytes) -> int:
    head, _, _ = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(head) + 4 + int(value)
    return len(head) + 4
