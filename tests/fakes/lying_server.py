"""The embedded endpoint with one lie: a real process that serves what it always does, but for one thing.

    python lying_server.py --lie LIE OPTIONS-OF-THE-ENDPOINT...

`ignore-treatment`   reads `--speculative-config` and does not act on it
`treat-both`         speculates whether it is told to or not
`cache-prefix`       serves prompts from what it kept of earlier ones
`drop-token`         leaves one token out of the second event of each answer; its usage tells the truth
`restart`            starts itself anew after the first answer: same process, same listening socket, fresh counters
`print-fallback`     prints that a kernel fell back
`rename-counter`     calls its count of successful requests by another name
`honest`             none

With `--load FILE` before the endpoint's options it loads a library first and prints its name; `load-another` loads the
one of the folder beside instead.
"""

import ctypes
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

from labctl.servers.reference.decoder import Decoder
from labctl.servers.reference.engine import Engine
from labctl.servers.reference.options import read_options
from labctl.servers.reference.server import Exchange, ReferenceServer
from labctl.servers.reference.weights import make_weights

OPTION = "--speculative-config"
SPECULATION = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'
INHERITED = "LYING_SERVER_LISTENER"


class LyingExchange(Exchange):
    """The endpoint's answers, but for the lie."""

    lie = "honest"

    def do_POST(self) -> None:  # noqa: N802 (the standard server's own name)
        """Generate, and perhaps start anew."""
        super().do_POST()
        if self.lie == "restart" and INHERITED not in os.environ:
            self.wfile.flush()
            listener = self.server.socket.fileno()
            os.set_inheritable(listener, True)
            os.execve(sys.executable, sys.orig_argv, {**os.environ, INHERITED: str(listener)})  # noqa: S606 (itself)

    def _stream(self, events: Generator[bytes, None, None]) -> None:
        super()._stream(_without_a_token(events) if self.lie == "drop-token" else events)

    def _metrics(self) -> bytes:
        told = super()._metrics()
        return told.replace(b"vllm:request_success", b"vllm:requests_done") if self.lie == "rename-counter" else told


class LyingServer(ReferenceServer):
    """The endpoint's listener, or the one that it had before it started anew."""

    def server_bind(self) -> None:
        """Take over the socket that was inherited, where there is one."""
        if INHERITED not in os.environ:
            super().server_bind()
            return
        self.socket.close()
        self.socket = type(self.socket)(fileno=int(os.environ[INHERITED]))
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.options.host, int(self.server_address[1])


def _without_a_token(events: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    for number, event in enumerate(events):
        start = event.find(b'"token_ids":[') + len(b'"token_ids":[')
        end = event.find(b"]", start)
        if number == 1 and start < end:
            kept = event[start:end].split(b",")[1:]
            yield event[:start] + b",".join(kept) + event[end:]
        else:
            yield event


def arguments(lie: str, given: list[str]) -> list[str]:
    """What the endpoint is told, where the lie is about that."""
    at = given.index(OPTION) if OPTION in given else len(given)
    untreated = given[:at] + given[at + 2 :]
    match lie:
        case "ignore-treatment":
            return untreated
        case "treat-both":
            return [*untreated, OPTION, SPECULATION]
        case "cache-prefix":
            return [*given, "--enable-prefix-caching"]
        case _:
            return given


def load(library: Path, lie: str) -> None:
    """Load a library of a set, or the one of the same name in the folder beside."""
    sys.stderr.write(f"kernels of {library.parent.name} are loaded\n")
    if lie == "load-another":
        library = next(path for path in library.parent.parent.glob(f"*/{library.name}") if path != library)
    ctypes.CDLL(str(library))


def main() -> None:
    """Serve until SIGTERM."""
    started_s = time.time()
    lie, given = sys.argv[2], sys.argv[3:]
    if given[0] == "--load":
        load(Path(given[1]), lie)
        given = given[2:]
    options = read_options(arguments(lie, given))
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(asctime)s %(message)s")
    LyingExchange.lie = lie
    if lie == "print-fallback":
        logging.getLogger().info("kernel 16,128,32 is not there, using fallback")
    server = LyingServer(Engine(Decoder(make_weights()), options), options, started_s)
    server.RequestHandlerClass = LyingExchange
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stop.wait()
    server.shutdown()


if __name__ == "__main__":
    main()
