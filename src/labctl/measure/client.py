"""Measuring: one request over one connection, and everything that is known about it on disk as it ends."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import httpx
from pydantic import AfterValidator, Field, PositiveInt

from labctl.clock import Clock, SystemClock, realtime_offset_ns
from labctl.codes import Code
from labctl.durable import write_once
from labctl.errors import Problem, StreamBroken
from labctl.frozen import FrozenModel, SafeName
from labctl.measure.transport import TooLarge, loopback_client
from labctl.measure.wire import STAMPS, Capture, RowLimits, is_loopback
from labctl.records.wire import HTTP_OK, Ended, Port, RowClosed, RowOpened, wire_lines


def _literal_loopback(host: str) -> str:
    if not is_loopback(host):
        message = "a literal IPv4 loopback address"
        raise ValueError(message)
    return host


UrlPath = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._-]+)+$")]
Loopback = Annotated[str, AfterValidator(_literal_loopback)]


class RowRequest(FrozenModel):
    """One generation request."""

    row: PositiveInt
    """Its place in the start, from 1."""
    prompt_id: SafeName
    """The prompt's id in the suite."""
    host: Loopback
    """A literal loopback address."""
    port: Port
    """The server's port."""
    path: UrlPath
    """The path of the generation endpoint."""
    body: bytes
    """The JSON body, sent as it is."""


@dataclass(frozen=True, slots=True)
class RowFiles:
    """Where the facts of one row go."""

    wire: Path
    reads: Path


@dataclass(frozen=True, slots=True)
class _Ending:
    ended: Ended
    detail: str | None = None
    http_status: int | None = None


def measure_row(request: RowRequest, files: RowFiles, limits: RowLimits, clock: Clock) -> RowClosed:
    """Send one request, read its response to the end, and write both files, however it ends.

    An exception from outside (a signal) also leaves the files behind, ended `interrupted`, and goes on.

    Raises:
        Refused: one of the files exists (EXISTS).
        BrokenEvidence: the files could not be written (WRITE_FAILED).
    """
    opened = _opened(request, clock)
    capture = Capture()
    ending = _Ending("interrupted")
    collector = _QuietCollector()
    try:
        with collector:
            ending = _exchange(request, capture, limits, clock)
    finally:
        closed = _closed(ending, capture, collector.collections, clock)
        if capture.connect_started is not None:
            write_once(files.wire, capture.received)
            write_once(files.reads, wire_lines([opened, *capture.lines(), closed]))
    return closed


def fetch_bytes(url: str, timeout_s: float) -> bytes:
    """The body of a plain GET from a literal loopback address, under the same rules as a row.

    Raises:
        StreamBroken: any other outcome than a whole 200 response (STREAM_BROKEN, REQUEST_TIMEOUT).
    """
    limits = RowLimits(connect_s=timeout_s, read_s=timeout_s, total_s=timeout_s)
    try:
        with loopback_client(Capture(), limits, SystemClock()) as client, client.stream("GET", url) as response:
            body = b"".join(response.iter_raw())
    except httpx.TimeoutException as error:
        raise StreamBroken(_fetch_problem(Code.REQUEST_TIMEOUT, url, str(error))) from error
    except httpx.HTTPError as error:
        raise StreamBroken(_fetch_problem(Code.STREAM_BROKEN, url, str(error))) from error
    if response.status_code != HTTP_OK:
        raise StreamBroken(_fetch_problem(Code.STREAM_BROKEN, url, f"status {response.status_code}"))
    return body


def _exchange(request: RowRequest, capture: Capture, limits: RowLimits, clock: Clock) -> _Ending:
    status: int | None = None
    url = f"http://{request.host}:{request.port}{request.path}"
    headers = {"Content-Type": "application/json"}
    try:
        with (
            loopback_client(capture, limits, clock) as client,
            client.stream("POST", url, content=request.body, headers=headers) as response,
        ):
            status = response.status_code
            for _ in response.iter_raw():
                pass
    except httpx.TimeoutException as error:
        return _Ending("timeout", str(error), status)
    except TooLarge as error:
        return _Ending("over_limit", str(error), status)
    except httpx.HTTPError as error:
        return _Ending("transport_error", str(error), status)
    return _Ending("complete" if status == HTTP_OK else "status_not_200", None, status)


def _opened(request: RowRequest, clock: Clock) -> RowOpened:
    return RowOpened(
        row=request.row,
        prompt_id=request.prompt_id,
        host=request.host,
        port=request.port,
        stamps=STAMPS,
        clock_offset_ns=realtime_offset_ns(clock),
        boottime_minus_monotonic_ns=_boottime_offset_ns(clock),
    )


def _closed(ending: _Ending, capture: Capture, collections: int, clock: Clock) -> RowClosed:
    return RowClosed(
        mono_ns=clock.monotonic_ns(),
        clock_offset_ns=realtime_offset_ns(clock),
        boottime_minus_monotonic_ns=_boottime_offset_ns(clock),
        ended=ending.ended,
        detail=ending.detail,
        http_status=ending.http_status,
        peer_closed=capture.peer_closed,
        gc_collections=collections,
    )


def _boottime_offset_ns(clock: Clock) -> int:
    return clock.boottime_ns() - clock.monotonic_ns()


@contextmanager
def heap_kept() -> Iterator[None]:
    """What lives before a row is not looked through again before each later one, which would take longer than a row."""
    try:
        yield
    finally:
        gc.unfreeze()


class _QuietCollector:
    """No garbage collection inside; `collections` counts those that happened all the same."""

    def __init__(self) -> None:
        self.collections = 0
        self._was_enabled = gc.isenabled()

    def __enter__(self) -> None:
        gc.collect()
        gc.freeze()
        gc.disable()
        self._before = _collections()

    def __exit__(self, *_: object) -> None:
        self.collections = _collections() - self._before
        if self._was_enabled:
            gc.enable()


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _fetch_problem(code: Code, url: str, got: str) -> Problem:
    return Problem(code, url, "a whole response with status 200", got, "read the server's log")
