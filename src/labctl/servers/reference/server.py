"""The HTTP side: a thread for each connection, HTTP/1.1, one chunk for each event, sent the moment it exists."""

import logging
import socketserver
import sys
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from labctl.servers.reference.engine import Engine, Work
from labctl.servers.reference.events import DONE, Answer, Usage, error_body, json_bytes, stream_event
from labctl.servers.reference.generation import Step
from labctl.servers.reference.options import Options
from labctl.servers.reference.requests import Api, Asked, Offer, RequestRefused, read_request
from labctl.servers.reference.tokens import TextStream

VERSION = "reference-1"
_LOG = logging.getLogger("labctl.servers.reference")
_APIS = {"/v1/completions": Api.COMPLETIONS, "/v1/chat/completions": Api.CHAT}
_LARGEST_BODY_BYTES = 1 << 20
_JSON = "application/json"


class ReferenceServer(ThreadingHTTPServer):
    """The listening socket with the engine behind it."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, engine: Engine, options: Options, process_start_s: float) -> None:
        self.engine = engine
        self.options = options
        self.process_start_s = process_start_s
        super().__init__((options.host, options.port), Exchange)

    def server_bind(self) -> None:
        """Bind without the look-up of the host's name that the standard server makes."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.options.host, int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in one line that a client reset its connection; anything else is a bug and keeps its trace."""
        error = sys.exception()
        if isinstance(error, ConnectionError):
            _LOG.info("%s: %s", client_address, error)
        else:
            _LOG.error("%s: unexpected error with %s", client_address, request, exc_info=error)


class Exchange(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = VERSION
    sys_version = ""
    disable_nagle_algorithm = True
    server: ReferenceServer

    def do_GET(self) -> None:
        """Answer what generates nothing."""
        pages: dict[str, Callable[[], tuple[str, bytes]]] = {
            "/health": lambda: (_JSON, b""),
            "/version": lambda: (_JSON, json_bytes({"version": VERSION})),
            "/v1/models": lambda: (_JSON, json_bytes(self._models())),
            "/metrics": lambda: ("text/plain; version=0.0.4; charset=utf-8", self._metrics()),
        }
        page = pages.get(self.path)
        if page is None:
            self._refuse(RequestRefused(HTTPStatus.NOT_FOUND, "NotFoundError", "Not Found"))
        else:
            self._send(HTTPStatus.OK, *page())

    def do_POST(self) -> None:
        """Generate."""
        try:
            asked = self._read()
        except RequestRefused as refused:
            self._refuse(refused)
            return
        reply = _Reply(self.server, asked)
        try:
            if "stream" in asked.flags:
                self._stream(reply.events())
            else:
                self._send(HTTPStatus.OK, _JSON, reply.whole())
        except ConnectionError:
            self.close_connection = True
            _LOG.info("%s hung up before the end of its answer", self.address_string())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the standard server's own signature)
        """Write the access line to the log."""
        _LOG.info('%s:%d - "%s"', *self.client_address[:2], format % args if args else format)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002 (as above)
        """One line for each request."""
        _LOG.info('%s:%d - "%s" %s', *self.client_address[:2], self.requestline, int(code))

    def _read(self) -> Asked:
        api = _APIS.get(self.path)
        length = self.headers.get("content-length", "")
        if api is None or not length.isdecimal() or int(length) > _LARGEST_BODY_BYTES:
            self.close_connection = True
            if api is None:
                raise RequestRefused(HTTPStatus.NOT_FOUND, "NotFoundError", "Not Found")
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "BadRequestError", "a body of known length, at most 1 MiB")
        options = self.server.options
        return read_request(self.rfile.read(int(length)), api, Offer(options.served_model_name, options.max_model_len))

    def _refuse(self, refused: RequestRefused) -> None:
        self._send(
            HTTPStatus(refused.status), _JSON, json_bytes(error_body(refused.message, refused.kind, refused.status))
        )

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Generator[bytes, None, None]) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with closing(events):
            for event in events:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _models(self) -> dict[str, object]:
        options = self.server.options
        model = {
            "id": options.served_model_name,
            "object": "model",
            "created": int(self.server.process_start_s),
            "owned_by": "labctl",
            "max_model_len": options.max_model_len,
        }
        return {"object": "list", "data": [model]}

    def _metrics(self) -> bytes:
        return self.server.engine.counters.render(self.server.process_start_s).encode()


class _Reply:
    def __init__(self, server: ReferenceServer, asked: Asked) -> None:
        prefix = "cmpl" if asked.api is Api.COMPLETIONS else "chatcmpl"
        self._answer = Answer(f"{prefix}-{uuid.uuid4().hex}", int(time.time()), server.options.served_model_name, asked)
        self._details = server.options.prompt_tokens_details
        self._work = Work(asked)
        self._steps = server.engine.run(self._work)

    def events(self) -> Generator[bytes, None, None]:
        text = TextStream()
        with closing(self._steps) as steps:
            for step in steps:
                before = self._work.generated - len(step.tokens)
                if before == 0:
                    yield from map(stream_event, self._answer.opening())
                yield stream_event(self._answer.event(step, _text_of(text, step), before))
        if "include_usage" in self._work.asked.flags:
            yield stream_event(self._answer.usage_event(self._usage()))
        yield DONE

    def whole(self) -> bytes:
        text = TextStream()
        steps = list(self._steps)
        return json_bytes(self._answer.whole(steps, "".join(_text_of(text, step) for step in steps), self._usage()))

    def _usage(self) -> Usage:
        cached = self._work.cached_tokens if self._details == "on" else None
        return Usage(len(self._work.asked.prompt), self._work.generated, cached)


def _text_of(text: TextStream, step: Step) -> str:
    return text.push(step.tokens) + (text.finish() if step.finish is not None else "")
