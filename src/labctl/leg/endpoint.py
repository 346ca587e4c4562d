"""Running an endpoint leg: one whole life of a server, each step adding one concern and ending on any exception."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import AppendLog, write_once
from labctl.errors import LegFailed, Problem
from labctl.host.idle import sample_telemetry
from labctl.leg.closing import always_ended
from labctl.leg.device_memory import Baseline
from labctl.leg.facts import ReadyFacts, maps_text, process_record, see_last, see_ready
from labctl.leg.interruption import Interruption, ask_to_end_for_log
from labctl.leg.plan import ready_plan, session_plan
from labctl.leg.postflight import end_server
from labctl.leg.progress import Progress
from labctl.leg.reserve import Reserve
from labctl.measure.session import measure_prompts
from labctl.records.order import WorkOrder
from labctl.records.wire import RowClosed
from labctl.rundir import LegPaths
from labctl.servers.log import ServerLog
from labctl.servers.process import ServerCommand, ServerProcess
from labctl.servers.readiness import await_ready, server_exited


@dataclass(slots=True)
class EndpointStart:
    """What one start of a server is run with, and how far it came."""

    order: WorkOrder
    interruption: Interruption
    progress: Progress
    clock: Clock
    rows_completed: int = 0
    baseline: Baseline = field(init=False)

    def __post_init__(self) -> None:
        self.baseline = Baseline(self.order)

    @property
    def leg(self) -> LegPaths:
        """Where the records go."""
        return LegPaths(Path(self.order.paths.leg))


def run_endpoint_start(start: EndpointStart) -> None:
    """Start the server, measure every prompt, stop the server, and prove that nothing is left.

    Raises:
        LegFailed: the server did not get ready, a request broke, a signal came, or something was left.
        BrokenEvidence: a record could not be written.
    """
    with _server(start) as server, start.interruption.allowed():
        readiness = await_ready(ready_plan(start.order), server, start.clock)
        ready = see_ready(start.order, server, readiness)
        start.baseline.segments.update(ready.segments)
        start.progress.tell("ready", attempts=readiness.attempts)
        with _recorded(start, server, ready):
            _measure(start, server, readiness.served_model)


@contextmanager
def _server(start: EndpointStart) -> Iterator[ServerProcess]:
    order, reserve = start.order, Reserve.take(start.leg.root)
    log = ServerLog(start.leg.server_log, order.limits.log_limit_bytes, ask_to_end_for_log)
    command = ServerCommand(argv=order.argv, environment=order.environment, working=order.paths.working)
    try:
        server = ServerProcess.start(command, log, start.clock)
    except LegFailed:
        log.close()
        reserve.release()
        raise
    start.progress.tell("started", pid=server.root.pid)
    with always_ended(lambda: _ended(start, server, reserve)):
        try:
            yield server
        except LegFailed as error:
            raise type(error)((*error.problems, *_why(server, error))) from error


def _ended(start: EndpointStart, server: ServerProcess, reserve: Reserve) -> tuple[Problem, ...]:
    start.progress.tell("stopping")
    return end_server(start.order, server, start.baseline, reserve, start.clock)


def _why(server: ServerProcess, error: LegFailed) -> tuple[Problem, ...]:
    """What the server itself says of a failure that was met somewhere else; asked before it is stopped."""
    if Code.LOG_LIMIT in error.codes:
        sys.stderr.write(f"the last that the server printed:\n{server.log.tail}\n")
        got = f"{server.log.printed_bytes} bytes so far, the last line {server.log.last_line!r}"
        return (Problem(Code.LOG_LIMIT, "server.log", f"{server.log.kept_bytes} bytes kept", got, "read server.log"),)
    status = server.exit_status()
    if status is None or Code.SERVER_EXITED in error.codes:
        return ()
    return (server_exited(server, status),)


@contextmanager
def _recorded(start: EndpointStart, server: ServerProcess, ready: ReadyFacts) -> Iterator[None]:
    """Write what the processes looked like, however the session ends."""
    try:
        yield
    finally:
        last = see_last(start.order, server)
        start.baseline.segments.update(last.segments)
        write_once(start.leg.process, process_record(ready, last).canonical())
        write_once(start.leg.maps, maps_text(ready, last))


def _measure(start: EndpointStart, server: ServerProcess, served_model: str) -> None:
    plan = session_plan(start.order, served_model)
    with AppendLog.create(start.leg.telemetry) as telemetry:

        def sample(row: int) -> None:
            telemetry.append(sample_telemetry(row, server.family(), start.clock).canonical())

        def between_rows(row: int, closed: RowClosed) -> None:
            start.rows_completed += closed.ended == "complete"
            received_bytes = start.leg.wire_bytes(row).stat().st_size
            start.progress.tell("row", row=row, of=len(plan.requests), bytes=received_bytes)
            sample(row)
            start.interruption.check()

        sample(0)
        measure_prompts(plan, start.leg, start.clock, between_rows)
