"""Running a leg: waiting until the server answers, and proof that the answer is its own."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from labctl.clock import Clock
from labctl.codes import Code
from labctl.engines.vocabulary import Endpoints
from labctl.errors import MalformedRecord, Problem, ServerNotReady
from labctl.frozen import FrozenModel, strict_json
from labctl.records.leg import Listener, Readiness
from labctl.servers.log import printable
from labctl.servers.process import ServerProcess
from labctl.servers.sockets import listeners

POLL_SHORTEST_S = 0.02
POLL_LONGEST_S = 0.5
POLL_SHARE = 0.02
ATTEMPT_S = 2.0
BODY_LIMIT_BYTES = 1 << 20
HTTP_OK = 200
NS_PER_S = 1_000_000_000


class ReadyPlan(FrozenModel):
    """Where and how long to ask."""

    address: str
    """The literal address that the server was started on."""
    port: int
    """Its port."""
    endpoints: Endpoints
    """Paths; none of those used here generates anything."""
    timeout_s: int
    """Seconds from the start of the process."""
    served_name: str | None
    """The model name that the server was told to serve, where the command says one."""


def await_ready(plan: ReadyPlan, server: ServerProcess, clock: Clock) -> Readiness:
    """Ask until the server is healthy, then make sure that it was our server that answered.

    Raises:
        ServerNotReady: it ended (SERVER_EXITED), stayed silent (READY_TIMEOUT), did not say what it serves
            (STREAM_BROKEN), or was not the one who answered (FOREIGN_LISTENER).
    """
    with _client(plan) as client:
        attempts = _await_health(plan, server, client, clock)
        ready_mono_ns = clock.monotonic_ns()
        require_sole_listener(plan.port, server)
        version_body = _body(client, plan.endpoints.version)
        models_body = _body(client, plan.endpoints.models)
    return Readiness(
        process_started_mono_ns=server.started_mono_ns,
        ready_mono_ns=ready_mono_ns,
        attempts=attempts,
        version_body=version_body,
        models_body=models_body,
        served_model=_served_model(plan, models_body),
    )


def require_sole_listener(port: int, server: ServerProcess) -> Listener:
    """The only LISTEN socket on the port, held by the server's own processes.

    Raises:
        ServerNotReady: there is another one, or it belongs to somebody else (FOREIGN_LISTENER).
    """
    found = listeners(port, server.family())
    if len(found) == 1 and found[0].owner_pids:
        return found[0]
    got = "; ".join(f"{one.address} inode {one.inode} held by {one.owner_pids or 'a stranger'}" for one in found)
    raise ServerNotReady(
        Problem(
            Code.FOREIGN_LISTENER,
            f"port {port}",
            "one LISTEN socket, held by the server that the leg started",
            got or "none",
            "end whatever else listens there",
        )
    )


def server_exited(server: ServerProcess, status: int) -> Problem:
    """What to say of a server that ended by itself."""
    how = f"exit status {status}" if status >= 0 else f"signal {-status}"
    last = server.log.last_line
    got = f"{how}, last log line {last!r}" if last else f"{how}, an empty log"
    return Problem(Code.SERVER_EXITED, "server", "a process that runs until it is stopped", got, "read server.log")


@contextmanager
def _client(plan: ReadyPlan) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"http://{plan.address}:{plan.port}",
        headers={"Connection": "close"},
        limits=httpx.Limits(max_keepalive_connections=0),
        timeout=ATTEMPT_S,
        trust_env=False,
        follow_redirects=False,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # never used; the default would read certificates from disk
    ) as client:
        yield client


def _await_health(plan: ReadyPlan, server: ServerProcess, client: httpx.Client, clock: Clock) -> int:
    deadline_ns = server.started_mono_ns + plan.timeout_s * NS_PER_S
    attempts = 0
    while True:
        status = server.exit_status()
        if status is not None:
            raise ServerNotReady(server_exited(server, status))
        attempts += 1
        left_s = (deadline_ns - clock.monotonic_ns()) / NS_PER_S
        answer = _health(client, plan.endpoints.health, min(max(left_s, POLL_SHORTEST_S), ATTEMPT_S))
        if answer is None:
            return attempts
        if clock.monotonic_ns() >= deadline_ns:
            if listeners(plan.port, ()):
                require_sole_listener(plan.port, server)  # a stranger there explains the silence better
            raise ServerNotReady(_late(plan, answer))
        clock.sleep(_pause_s(clock.monotonic_ns() - server.started_mono_ns))


def _pause_s(waited_ns: int) -> float:
    # Asking takes processor time from the server: the longer a start takes, the less often it is asked.
    return min(max(POLL_SHORTEST_S, POLL_SHARE * waited_ns / NS_PER_S), POLL_LONGEST_S)


def _health(client: httpx.Client, path: str, timeout_s: float) -> str | None:
    try:
        with client.stream("GET", path, timeout=timeout_s) as response:
            status = response.status_code
    except httpx.HTTPError as error:
        return printable(f"{type(error).__name__}: {error}")
    return None if status == HTTP_OK else f"status {status}"


def _late(plan: ReadyPlan, answer: str) -> Problem:
    where = f"{plan.address}:{plan.port}{plan.endpoints.health}"
    do = "read server.log, or register a longer ready.timeout_s"
    return Problem(Code.READY_TIMEOUT, where, f"status 200 within {plan.timeout_s} s", answer, do)


def _body(client: httpx.Client, path: str) -> str:
    where = f"{client.base_url}{path}"
    body = b""
    try:
        with client.stream("GET", path) as response:
            for part in response.iter_bytes():
                body += part
                if len(body) > BODY_LIMIT_BYTES:
                    raise ServerNotReady(_unfit(where, f"more than {BODY_LIMIT_BYTES} bytes"))
    except httpx.HTTPError as error:
        raise ServerNotReady(_unfit(where, printable(f"{type(error).__name__}: {error}"))) from error
    if response.status_code != HTTP_OK:
        raise ServerNotReady(_unfit(where, f"status {response.status_code}"))
    return body.decode("utf-8", "backslashreplace")


def _served_model(plan: ReadyPlan, models_body: str) -> str:
    where = f"port {plan.port}: models"
    expected = "one model" if plan.served_name is None else f"only the model {plan.served_name!r}"
    do = "serve one model, under the name that the command gives"
    try:
        listed = strict_json(models_body.encode(), where)
    except MalformedRecord as error:
        raise ServerNotReady(_unfit(where, printable(models_body[:80]))) from error
    match listed:
        case {"data": [{"id": str(name)}]} if plan.served_name in {None, name}:
            return name
        case _:
            got = printable(models_body[:200])
            raise ServerNotReady(Problem(Code.FOREIGN_LISTENER, where, expected, got, do))


def _unfit(where: str, got: str) -> Problem:
    return Problem(Code.STREAM_BROKEN, where, "a whole answer with status 200", got, "read server.log")
