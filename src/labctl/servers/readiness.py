"""Running a leg: waiting until the server answers, and proof that the answer is its own."""

from dataclasses import dataclass

from labctl.clock import Clock
from labctl.codes import Code
from labctl.engines.vocabulary import Endpoints
from labctl.errors import MalformedRecord, Problem, ServerNotReady
from labctl.frozen import FrozenModel, strict_json
from labctl.records.leg import Listener, Readiness
from labctl.servers.log import printable
from labctl.servers.process import ServerProcess
from labctl.servers.question import Answer, AnsweredLate, Unanswered, ask
from labctl.servers.sockets import listeners

POLL_SHORTEST_S = 0.02
POLL_LONGEST_S = 0.5
POLL_SHARE = 0.02
ATTEMPT_S = 2.0
ANSWER_S = 10.0
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
    """Seconds from the start of the process to the last byte of the last answer."""
    served_name: str | None
    """The model name that the server was told to serve, where the command says one."""


def await_ready(plan: ReadyPlan, server: ServerProcess, clock: Clock) -> Readiness:
    """Ask until the server is healthy, then make sure that it was our server that answered.

    Raises:
        ServerNotReady: it ended (SERVER_EXITED), did not answer in time (READY_TIMEOUT), did not say what it serves
            (STREAM_BROKEN), or was not the one who answered (FOREIGN_LISTENER).
    """
    asking = _Asking(plan, server.started_mono_ns + plan.timeout_s * NS_PER_S, clock)
    attempts = _await_health(asking, server)
    ready_mono_ns = clock.monotonic_ns()
    require_sole_listener(plan.port, server)
    version_body = _body(asking, plan.endpoints.version)
    models_body = _body(asking, plan.endpoints.models)
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


@dataclass(frozen=True, slots=True)
class _Asking:
    plan: ReadyPlan
    deadline_ns: int
    clock: Clock

    def url(self, path: str) -> str:
        return f"http://{self.plan.address}:{self.plan.port}{path}"

    def ask(self, path: str, within_s: float) -> Answer:
        """Ask within a time of its own, and at the latest until readiness as a whole is overdue."""
        own_deadline_ns = self.clock.monotonic_ns() + round(within_s * NS_PER_S)
        return ask(self.url(path), min(own_deadline_ns, self.deadline_ns), self.clock)


def _await_health(asking: _Asking, server: ServerProcess) -> int:
    plan, clock = asking.plan, asking.clock
    attempts = 0
    while True:
        status = server.exit_status()
        if status is not None:
            raise ServerNotReady(server_exited(server, status))
        attempts += 1
        answer = _health(asking)
        if answer is None:
            return attempts
        if clock.monotonic_ns() >= asking.deadline_ns:
            if listeners(plan.port, ()):
                require_sole_listener(plan.port, server)  # a stranger there explains the silence better
            expected = f"status 200 within {plan.timeout_s} s"
            raise ServerNotReady(_late(asking, plan.endpoints.health, expected, answer))
        clock.sleep(_pause_s(clock.monotonic_ns() - server.started_mono_ns))


def _pause_s(waited_ns: int) -> float:
    # Asking takes processor time from the server: the longer a start takes, the less often it is asked.
    return min(max(POLL_SHORTEST_S, POLL_SHARE * waited_ns / NS_PER_S), POLL_LONGEST_S)


def _health(asking: _Asking) -> str | None:
    try:
        status = asking.ask(asking.plan.endpoints.health, ATTEMPT_S).status
    except Unanswered as error:
        return printable(str(error))
    return None if status == HTTP_OK else f"status {status}"


def _late(asking: _Asking, path: str, expected: str, got: str) -> Problem:
    do = "read server.log, or register a longer ready.timeout_s"
    return Problem(Code.READY_TIMEOUT, asking.url(path), expected, got, do)


def _body(asking: _Asking, path: str) -> str:
    where = asking.url(path)
    try:
        answer = asking.ask(path, ANSWER_S)
    except AnsweredLate as error:
        expected = f"a whole answer in {ANSWER_S:g} s, and within {asking.plan.timeout_s} s of the start"
        raise ServerNotReady(_late(asking, path, expected, printable(str(error)))) from error
    except Unanswered as error:
        raise ServerNotReady(_unfit(where, printable(str(error)))) from error
    if answer.status != HTTP_OK:
        raise ServerNotReady(_unfit(where, f"status {answer.status}"))
    return answer.body.decode("utf-8", "backslashreplace")


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
