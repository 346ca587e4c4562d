import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.engines.reference import VOCABULARY
from labctl.engines.vocabulary import Endpoints
from labctl.errors import ServerNotReady
from labctl.servers.log import ServerLog
from labctl.servers.process import ServerCommand, ServerProcess
from labctl.servers.readiness import ReadyPlan, await_ready, require_sole_listener
from tests.fakes.leg import FAKE_SERVER, free_port
from tests.fakes.stream_server import Send, StreamServer, response

CLOCK = SystemClock()
ENDPOINTS = Endpoints.model_validate(VOCABULARY.endpoints.model_dump())


@contextmanager
def started(place: Path, port: int, *misbehaviour: str) -> Iterator[ServerProcess]:
    argv = (sys.executable, "-I", "-P", str(FAKE_SERVER), "--port", str(port), "--served-model-name", "m")
    log = ServerLog(place / "server.log", 1 << 20, lambda: None)
    command = ServerCommand(argv=argv + misbehaviour, environment={}, working=str(place))
    server = ServerProcess.start(command, log, CLOCK)
    try:
        yield server
    finally:
        server.stop(3, CLOCK)
        log.close()


def plan(port: int, served_name: str | None = "m", timeout_s: int = 5) -> ReadyPlan:
    return ReadyPlan(address="127.0.0.1", port=port, endpoints=ENDPOINTS, timeout_s=timeout_s, served_name=served_name)


def test_a_ready_server_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    sink = StreamServer()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{sink.port}")
    with started(tmp_path, port, "--ready-after", "0.3") as server, sink:
        readiness = await_ready(plan(port), server, CLOCK)
    assert not sink.peers
    assert readiness.served_model == "m"
    assert readiness.version_body == '{"version":"fake-1"}'
    assert readiness.attempts > 1
    assert 300_000_000 <= readiness.ready_mono_ns - readiness.process_started_mono_ns < 5_000_000_000


def test_any_one_model_will_do_where_the_command_names_none(tmp_path: Path) -> None:
    port = free_port()
    with started(tmp_path, port) as server:
        assert await_ready(plan(port, served_name=None), server, CLOCK).served_model == "m"


@pytest.mark.parametrize(
    ("misbehaviour", "code"),
    [
        (("--models-body", '{"data":[{"id":"m"},{"id":"n"}]}'), Code.FOREIGN_LISTENER),
        (("--models-body", '{"data":[]}'), Code.FOREIGN_LISTENER),
        (("--models-body", '{"data":"m"}'), Code.FOREIGN_LISTENER),
        (("--models-body", '{"data":[{"id":"m"}],"data":[]}'), Code.STREAM_BROKEN),
        (("--models-body", "<html>\x1b[2J"), Code.STREAM_BROKEN),
        (("--version-status", "500"), Code.STREAM_BROKEN),
        (("--exit-at-start", "1"), Code.SERVER_EXITED),
    ],
)
def test_a_server_that_does_not_say_plainly_what_it_is_is_not_ready(
    tmp_path: Path, misbehaviour: tuple[str, ...], code: Code
) -> None:
    port = free_port()
    with started(tmp_path, port, *misbehaviour) as server, pytest.raises(ServerNotReady) as caught:
        await_ready(plan(port), server, CLOCK)
    assert caught.value.codes == (code,)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "misbehaviour",
    [
        ("--drip-body", "/version"),
        ("--drip-head", "/version"),
        ("--drip-body", "/v1/models"),
        ("--drip-body", "/health"),
        ("--drip-head", "/health"),
    ],
)
def test_a_server_that_drips_is_given_up_at_the_deadline(tmp_path: Path, misbehaviour: tuple[str, ...]) -> None:
    port = free_port()
    with started(tmp_path, port, *misbehaviour) as server:
        with pytest.raises(ServerNotReady, match="Timeout") as caught:
            await_ready(plan(port, timeout_s=2), server, CLOCK)
        waited_s = (CLOCK.monotonic_ns() - server.started_mono_ns) / 1e9
    assert caught.value.codes == (Code.READY_TIMEOUT,)
    assert misbehaviour[1] in caught.value.problems[0].where
    assert 1.9 < waited_s < 3.5


@pytest.mark.parametrize("path", ["/version", "/v1/models"])
def test_an_answer_without_end_is_not_kept(tmp_path: Path, path: str) -> None:
    port = free_port()
    with started(tmp_path, port, "--flood", path) as server:
        with pytest.raises(ServerNotReady, match="more than 1048576 bytes") as caught:
            await_ready(plan(port), server, CLOCK)
        assert caught.value.codes == (Code.STREAM_BROKEN,)


def test_an_answer_of_somebody_else_is_not_ours(tmp_path: Path) -> None:
    answering = StreamServer([Send(response("200 OK", "text/plain", b""))])
    with started(tmp_path, free_port()) as server, answering as stranger:
        with pytest.raises(ServerNotReady) as caught:
            await_ready(plan(stranger.port), server, CLOCK)
        assert stranger.requests
    assert caught.value.codes == (Code.FOREIGN_LISTENER,)
    assert "a stranger" in str(caught.value)


def test_nobody_on_the_port_is_not_a_listener(tmp_path: Path) -> None:
    with started(tmp_path, free_port()) as server, pytest.raises(ServerNotReady, match="got none"):
        require_sole_listener(free_port(), server)
