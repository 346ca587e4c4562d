"""Measuring: a connection that keeps every byte with the kernel's receive time, and does nothing else.

Theory of operation. The kernel stamps each segment when it arrives, however late this process runs. TCP joins
segments that wait and keeps the stamp of the last one, so a late read costs resolution, never truth. Therefore a read
here is one `recvmsg` and one list entry; ancillary data stays raw until the row is over. When the response has ended,
the connection is read on until the server closes it, so that bytes after the response are evidence too.
"""

import contextlib
import ipaddress
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal

import httpcore
from pydantic import Field, PositiveInt

from labctl.clock import Clock
from labctl.frozen import FrozenModel
from labctl.records.wire import Connected, ConnectStarted, Line, Read, Sent

# <asm-generic/socket.h> and <linux/net_tstamp.h>; the socket module does not name them in every version.
SO_TIMESTAMPING: Final = 37
SOF_TIMESTAMPING_RX_SOFTWARE: Final = 1 << 3
SOF_TIMESTAMPING_SOFTWARE: Final = 1 << 4
SCM_TIMESTAMPING: Final = struct.Struct("@6l")
ANCILLARY_BYTES: Final = 256
NS_PER_S: Final = 1_000_000_000

Seconds = Annotated[float, Field(gt=0)]
Ancillary = list[tuple[int, int, bytes]]
STAMPS: Final[Literal["kernel_software_rx", "none"]] = "kernel_software_rx" if sys.platform == "linux" else "none"


class RowLimits(FrozenModel):
    """When a request is given up."""

    connect_s: Seconds = 10.0
    """Longest wait for the connection."""
    read_s: Seconds = 120.0
    """Longest silence between two reads."""
    total_s: Seconds = 900.0
    """Longest time from the connection attempt to the end of the response."""
    drain_s: Seconds = 1.0
    """Longest wait, after the response, for the server to close the connection."""
    response_bytes: PositiveInt = 64 << 20
    """Most bytes of one response."""


class ResponseTooLarge(httpcore.NetworkError):
    """More bytes came than the limits allow."""


class Capture:
    """What one connection saw, in order and as raw as it came; turned into lines when the row is over."""

    def __init__(self) -> None:
        self.connect_started: ConnectStarted | None = None
        self.connected: Connected | None = None
        self.writes: list[tuple[int, int, int, bytes]] = []
        self.reads: list[tuple[Ancillary, int, bytes]] = []
        self.peer_closed = False

    @property
    def received(self) -> bytes:
        """All bytes that came."""
        return b"".join(data for _, _, data in self.reads)

    def lines(self) -> Iterator[Line]:
        """The facts in the order of the file format."""
        if self.connect_started is not None:
            yield self.connect_started
        if self.connected is not None:
            yield self.connected
        for before_ns, after_ns, realtime_ns, data in self.writes:
            text = data.decode("latin-1")
            yield Sent(mono_before_ns=before_ns, mono_after_ns=after_ns, realtime_ns=realtime_ns, bytes_latin1=text)
        for ancillary, mono_ns, data in self.reads:
            yield Read(kernel_ns=kernel_stamp_ns(ancillary), mono_ns=mono_ns, length=len(data))


class StampedBackend(httpcore.NetworkBackend):
    """Opens one connection to a literal loopback address."""

    def __init__(self, capture: Capture, limits: RowLimits, clock: Clock) -> None:
        self._capture = capture
        self._limits = limits
        self._clock = clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 (the signature is httpcore's)
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002 (the signature is httpcore's)
    ) -> httpcore.NetworkStream:
        """Connect, and write down what the connection really is."""
        if not is_loopback(host):
            message = f"{host!r} is not a literal loopback address"
            raise httpcore.ConnectError(message)
        with contextlib.ExitStack() as unless_connected:
            connection = unless_connected.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                _request_kernel_stamps(connection)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(timeout)
                self._connect(connection, host, port)
            except TimeoutError as error:
                raise httpcore.ConnectTimeout(str(error)) from error
            except OSError as error:
                raise httpcore.ConnectError(str(error)) from error
            unless_connected.pop_all()
        return StampedStream(connection, self._capture, self._limits, self._clock)

    def _connect(self, connection: socket.socket, host: str, port: int) -> None:
        clock = self._clock
        started = ConnectStarted(realtime_ns=clock.realtime_ns(), mono_ns=clock.monotonic_ns())
        self._capture.connect_started = started
        connection.connect((host, port))
        mono_ns, realtime_ns = clock.monotonic_ns(), clock.realtime_ns()
        peer, local = connection.getpeername(), connection.getsockname()
        self._capture.connected = Connected(
            mono_ns=mono_ns, realtime_ns=realtime_ns, local_port=local[1], peer_address=peer[0], peer_port=peer[1]
        )
        # A connection to a free ephemeral port can meet itself.
        if peer != (host, port) or local == peer:
            message = f"the other end is {peer[0]}:{peer[1]} and ours {local[0]}:{local[1]}, asked for {host}:{port}"
            raise ConnectionError(message)


class StampedStream(httpcore.NetworkStream):
    """One connection; a read is one `recvmsg` and one list entry."""

    def __init__(self, connection: socket.socket, capture: Capture, limits: RowLimits, clock: Clock) -> None:
        self._socket = connection
        self._capture = capture
        self._limits = limits
        self._now_ns = clock.monotonic_ns
        self._realtime_ns = clock.realtime_ns
        started_ns = capture.connect_started.mono_ns if capture.connect_started else clock.monotonic_ns()
        self._deadline_ns = started_ns + round(limits.total_s * NS_PER_S)
        self._room_bytes = limits.response_bytes
        self._armed_s: float | None = None
        self._is_intact = True

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Wait for bytes and keep them with their stamps; empty when the server closed its end."""
        self._is_intact = False
        self._arm(timeout)
        try:
            data, ancillary, _, _ = self._socket.recvmsg(max_bytes, ANCILLARY_BYTES)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error
        mono_ns = self._now_ns()
        if not data:
            self._capture.peer_closed = True
            return data
        self._capture.reads.append((ancillary, mono_ns, data))
        self._room_bytes -= len(data)
        if self._room_bytes < 0:
            message = f"more than {self._limits.response_bytes} bytes"
            raise ResponseTooLarge(message)
        self._is_intact = True
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, and keep what the kernel took of them."""
        self._is_intact = False
        while buffer:
            self._arm(timeout)
            realtime_ns, before_ns = self._realtime_ns(), self._now_ns()
            try:
                taken_bytes = self._socket.send(buffer)
            except TimeoutError as error:
                raise httpcore.WriteTimeout(str(error)) from error
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error
            self._capture.writes.append((before_ns, self._now_ns(), realtime_ns, buffer[:taken_bytes]))
            buffer = buffer[taken_bytes:]
        self._is_intact = True

    def close(self) -> None:
        """Read on until the server closes its end, where the exchange went well so far; then close ours."""
        with contextlib.closing(self._socket):
            if self._is_intact:
                self._drain()

    def _drain(self) -> None:
        end_ns = self._now_ns() + round(self._limits.drain_s * NS_PER_S)
        with contextlib.suppress(httpcore.NetworkError, httpcore.TimeoutException):
            while self.read(1 << 16, max(end_ns - self._now_ns(), 1) / NS_PER_S):
                pass

    def _arm(self, timeout: float | None) -> None:
        left_s = (self._deadline_ns - self._now_ns()) / NS_PER_S
        if left_s <= 0:
            message = f"not over after {self._limits.total_s} s"
            raise httpcore.ReadTimeout(message)
        seconds = left_s if timeout is None else min(timeout, left_s)
        if seconds != self._armed_s:
            self._socket.settimeout(seconds)
            self._armed_s = seconds


@contextlib.contextmanager
def kernel_stamps_held() -> Iterator[None]:
    """Keep the kernel stamping between rows: it turns stamping on late for the first socket that asks."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as idle:
        _request_kernel_stamps(idle)
        yield


def is_loopback(host: str) -> bool:
    """Whether a host is written as an IPv4 loopback address; names can point anywhere."""
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


def kernel_stamp_ns(ancillary: Ancillary) -> int | None:
    """The software receive stamp among ancillary data, in nanoseconds of CLOCK_REALTIME."""
    for level, kind, data in ancillary:
        if (level, kind, len(data)) == (socket.SOL_SOCKET, SO_TIMESTAMPING, SCM_TIMESTAMPING.size):
            seconds, nanoseconds, *_ = SCM_TIMESTAMPING.unpack(data)
            return (int(seconds) * NS_PER_S + int(nanoseconds)) or None
    return None


def _request_kernel_stamps(connection: socket.socket) -> None:
    if STAMPS == "kernel_software_rx":
        # A kernel that refuses gives no stamp, which each read then says.
        with contextlib.suppress(OSError):
            wanted = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE
            connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, wanted)
