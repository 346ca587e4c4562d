"""The life of the server process: load, listen, serve, stop."""

import logging
import signal
import threading
import time

from labctl.servers.reference.decoder import Decoder
from labctl.servers.reference.engine import Engine
from labctl.servers.reference.options import Options
from labctl.servers.reference.server import ReferenceServer
from labctl.servers.reference.weights import make_weights

_LOG = logging.getLogger("labctl.servers.reference")


def serve(options: Options, process_start_s: float) -> int:
    """Serve until SIGTERM or SIGINT; 0 after a clean stop, 1 when the port cannot be had."""
    _LOG.info("starting the reference endpoint: %s", options)
    begun_ns = time.monotonic_ns()
    engine = Engine(Decoder(make_weights()), options)
    loading_s = (time.monotonic_ns() - begun_ns) / 1e9
    _LOG.info("model loaded in %.3f s: seeded integers, a rehearsal stand-in, not a language model", loading_s)
    _LOG.info("speculation: %s", options.speculation or "off")
    try:
        server = ReferenceServer(engine, options, process_start_s)
    except OSError as error:
        _LOG.error("cannot listen on %s:%d: %s", options.host, options.port, error)
        return 1
    _serve_until_stopped(server)
    return 0


def _serve_until_stopped(server: ReferenceServer) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _LOG.info("listening on http://%s:%d", server.options.host, server.server_port)
    stop.wait()
    _LOG.info("stopping")
    server.shutdown()
    server.server_close()
