"""A scripted inference server: a real process on a real port that misbehaves in exactly the way that it is told.

```
python server.py --port P --served-model-name NAME [MISBEHAVIOUR]...
```

It answers `/health`, `/version`, `/v1/models`, `/metrics` and streams four tokens for each `POST /v1/completions`.
SIGTERM ends it with status 0. Misbehaviours, all optional and freely combined:

--ready-after S        health answers 503 for S seconds
--never-ready          health answers 503 for ever
--redirect-health      health answers 302 to a place that would answer 200
--exit-at-start N      one log line, then exit status N
--second-listener      a child answers on the same port too (SO_REUSEPORT)
--share-port           listens with SO_REUSEPORT, so that a stranger can join
--grandchild FILE      an orphan in a session of its own that ignores SIGTERM writes its pid to FILE and stays
--log-bytes N          prints N bytes of log when the first request comes
--ignore-sigterm       SIGTERM does nothing
--die-in-row K         killed by its own SIGKILL in the middle of the K-th response
--restart-after-row K  starts itself anew after the K-th response: same process, same listening socket, fresh counters
--serve-as NAME        lists another model name
--models-body TEXT     what `/v1/models` answers
--version-status N     the status of `/version`
--drip-body PATH       answers this path with one byte of a long body each tenth of a second
--drip-head PATH       answers this path with one header line each tenth of a second
--flood PATH           answers this path with a body that does not end
--stall                the first response never ends
--segment NAME         keeps a shared-memory segment of this name mapped, and leaves it behind
"""

import argparse
import contextlib
import json
import mmap
import os
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STARTED_S = time.monotonic()
TOKENS = 4
DRIP_S = 0.1
LOG_LINE = b"x" * 1023 + b"\n"


class Server(ThreadingHTTPServer):
    """The listener, with what the handlers share."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rows = 0
        super().__init__(("127.0.0.1", options.port), Handler, bind_and_activate=False)
        if options.inherit:
            self.socket.close()
            self.socket = socket.socket(fileno=options.inherit)
            self.server_name, self.server_port = "127.0.0.1", options.port
            return
        if options.second_listener or options.share_port:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.server_bind()
        self.server_activate()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        options = self.server.options
        match self.path:
            case options.drip_body:
                self._pour(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" ", DRIP_S)
            case options.drip_head:
                self._pour(b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n", DRIP_S)
            case options.flood:
                self._pour(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", LOG_LINE, 0)
            case "/health":
                self._health()
            case "/version":
                self._answer(options.version_status, b'{"version":"fake-1"}')
            case "/v1/models":
                name = options.serve_as or options.served_model_name
                body = options.models_body or json.dumps({"object": "list", "data": [{"id": name}]})
                self._answer(200, body.encode())
            case "/metrics":
                self._answer(200, f"rows_total {self.server.rows}\nstarted_seconds {STARTED_S}\n".encode())
            case _:
                self._answer(200, b"{}")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        options = self.server.options
        self.server.rows += 1
        if self.server.rows == 1:
            print_log(options.log_bytes)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for token in range(TOKENS):
            if token == TOKENS // 2:
                self._misbehave()
            self._event({"choices": [{"index": 0, "text": "x", "token_ids": [token]}]})
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True
        if self.server.rows == options.restart_after_row:
            self._restart()

    def _restart(self) -> None:
        self.wfile.flush()
        listener = self.server.socket.fileno()
        os.set_inheritable(listener, True)
        at = sys.argv.index("--restart-after-row")
        rest = [*sys.argv[:at], *sys.argv[at + 2 :], "--inherit", str(listener)]
        os.execv(sys.executable, [sys.executable, "-I", "-P", *rest])  # noqa: S606 (this very program)

    def log_message(self, *_: object) -> None:
        sys.stderr.write(f"{self.command} {self.path}\n")

    def _misbehave(self) -> None:
        options = self.server.options
        if self.server.rows == options.die_in_row:
            os.kill(os.getpid(), signal.SIGKILL)
        if options.stall:
            time.sleep(3600)

    def _health(self) -> None:
        options = self.server.options
        if options.redirect_health:
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif options.never_ready or time.monotonic() - STARTED_S < options.ready_after:
            self._answer(503, b"loading")
        else:
            self._answer(200, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _pour(self, head: bytes, drop: bytes, pause_s: float) -> None:
        """Answer without end."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(head)
            while True:
                self.wfile.write(drop)
                time.sleep(pause_s)

    def _event(self, value: object) -> None:
        self._chunk(f"data: {json.dumps(value)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def print_log(count: int) -> None:
    """Print this many bytes; ends early when nobody reads any more."""
    with contextlib.suppress(BrokenPipeError):
        for _ in range(count // len(LOG_LINE)):
            os.write(1, LOG_LINE)


def leave_grandchild(place: Path) -> None:
    """Fork an orphan in its own session that ignores SIGTERM and stays."""
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            partial = place.with_suffix(".partial")
            partial.write_text(str(os.getpid()))
            partial.rename(place)
            time.sleep(3600)
        os._exit(0)
    os.waitpid(child, 0)


def leave_segment(name: str) -> mmap.mmap:
    """Create a shared-memory segment and keep it mapped."""
    descriptor = os.open(f"/dev/shm/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(descriptor, 4096)
    segment = mmap.mmap(descriptor, 4096)
    os.close(descriptor)
    return segment


def listen_twice(options: argparse.Namespace) -> None:
    """Fork a child that answers on the same port too, until it is told to end."""
    if os.fork() == 0:
        Server(options).serve_forever()


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--ready-after", type=float, default=0)
    for name in ("never-ready", "redirect-health", "second-listener", "share-port", "ignore-sigterm", "stall"):
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("exit-at-start", "log-bytes", "die-in-row", "restart-after-row", "inherit"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--grandchild", type=Path)
    for name in ("serve-as", "drip-body", "drip-head", "flood"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--segment")
    parser.add_argument("--models-body")
    parser.add_argument("--version-status", type=int, default=200)
    return parser.parse_args()


def main() -> None:
    """Serve until SIGTERM."""
    options = read_options()
    if options.exit_at_start:
        sys.stderr.write("\x1b[2Jno memory for the model\n")
        sys.exit(options.exit_at_start)
    segment = leave_segment(options.segment) if options.segment else None
    if options.grandchild:
        leave_grandchild(options.grandchild)
    if options.second_listener:
        listen_twice(options)
    server = Server(options)
    ending = threading.Event()
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: ending.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ending.wait()
    server.shutdown()
    del segment


if __name__ == "__main__":
    main()
