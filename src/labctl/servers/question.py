"""Running a leg: one question to a server, with one deadline for the whole answer and a limit on its size."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpcore

from labctl.clock import Clock

HEADERS = (("Accept-Encoding", "identity"), ("Connection", "close"))
ANSWER_LIMIT_BYTES = 1 << 20
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes


class Unanswered(Exception):
    """No whole answer came; the message says why."""


class AnsweredLate(Unanswered):
    """The deadline passed, whether the server was silent or still sending."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    deadline_ns: int
    clock: Clock

    def left_s(self) -> float:
        left_ns = self.deadline_ns - self.clock.monotonic_ns()
        if left_ns <= 0:
            message = "not over at the deadline"
            raise httpcore.ReadTimeout(message)
        return left_ns / NS_PER_S


def ask(url: str, deadline_ns: int, clock: Clock) -> Answer:
    """The answer to a GET request over a connection of its own; no proxy, no redirect, no retry.

    Args:
        url: a literal address, port and path.
        deadline_ns: when, on the monotonic clock, the last byte must be there.
        clock: the machine's clock.

    Raises:
        Unanswered: refused, cut, malformed or too long; `AnsweredLate` where the deadline passed.
    """
    try:
        with httpcore.ConnectionPool(network_backend=_Backend(_Bounds(deadline_ns, clock))) as pool:
            response = pool.request("GET", url, headers=HEADERS)
    except httpcore.TimeoutException as error:
        raise AnsweredLate(_words(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise Unanswered(_words(error)) from error
    return Answer(response.status, response.content)


class _Backend(httpcore.NetworkBackend):
    """Time-outs of httpcore are for each read, so that a server that drips is waited for without end; these are not."""

    def __init__(self, bounds: _Bounds) -> None:
        self._bounds = bounds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 (the deadline takes its place)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left_s = self._bounds.left_s()
        stream = httpcore.SyncBackend().connect_tcp(host, port, left_s, local_address, socket_options)
        return _Stream(stream, self._bounds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, bounds: _Bounds) -> None:
        self._stream = stream
        self._bounds = bounds
        self._room_bytes = ANSWER_LIMIT_BYTES

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 (the deadline decides)
        data = self._stream.read(max_bytes, self._bounds.left_s())
        self._room_bytes -= len(data)
        if self._room_bytes < 0:
            message = f"more than {ANSWER_LIMIT_BYTES} bytes"
            raise httpcore.ReadError(message)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 (the deadline decides)
        self._stream.write(buffer, self._bounds.left_s())

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 (the signature is httpcore's)
        return self._stream.get_extra_info(info)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
