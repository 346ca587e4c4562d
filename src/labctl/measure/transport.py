"""Measuring: httpx over one stamped connection, with no retry, no proxy, no redirect and no second protocol."""

import contextlib
from collections.abc import Iterator

import httpcore
import httpx

from labctl import __version__
from labctl.clock import Clock
from labctl.measure.wire import Capture, ResponseTooLarge, RowLimits, StampedBackend

HEADERS = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": f"labctl/{__version__}"}


class TooLarge(httpx.TransportError):
    """More bytes came than the limits allow."""


class StampedTransport(httpx.BaseTransport):
    """One HTTP/1.1 connection that writes into a capture."""

    def __init__(self, capture: Capture, limits: RowLimits, clock: Clock) -> None:
        self._pool = httpcore.ConnectionPool(
            network_backend=StampedBackend(capture, limits, clock),
            retries=0,
            http1=True,
            http2=False,
            max_connections=1,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read the head of its response."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        asked = httpcore.Request(
            request.method, url, headers=request.headers.raw, content=request.read(), extensions=request.extensions
        )
        with _httpx_errors():
            answer = self._pool.handle_request(asked)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def loopback_client(capture: Capture, limits: RowLimits, clock: Clock) -> httpx.Client:
    """A client for one request."""
    return httpx.Client(
        transport=StampedTransport(capture, limits, clock),
        headers=HEADERS,
        timeout=httpx.Timeout(limits.read_s, connect=min(limits.connect_s, limits.total_s)),
        trust_env=False,
        follow_redirects=False,
    )


@contextlib.contextmanager
def _httpx_errors() -> Iterator[None]:
    try:
        yield
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(_words(error)) from error
    except ResponseTooLarge as error:
        raise TooLarge(_words(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise httpx.ReadError(_words(error)) from error


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
