"""Measuring: one start of a server, from its counters before the first prompt to its counters after the last."""

import contextlib
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import make_folder, write_once
from labctl.errors import Problem, StreamBroken
from labctl.frozen import FrozenModel, SafeName
from labctl.measure.client import Loopback, RowFiles, RowRequest, UrlPath, fetch_bytes, heap_kept, measure_row
from labctl.measure.wire import RowLimits, Seconds, kernel_stamps_held
from labctl.records.wire import Port, RowClosed
from labctl.rundir import LegPaths


class PlannedRequest(FrozenModel):
    """A prompt as it will be sent."""

    prompt_id: SafeName
    """The prompt's id in the suite."""
    body: bytes
    """The JSON body (`records.requests.request_body`)."""


class SessionPlan(FrozenModel):
    """Everything that one start is asked, in order."""

    host: Loopback
    """The literal loopback address that the server was started on."""
    port: Port
    """The server's port."""
    path: UrlPath
    """The path of the generation endpoint."""
    metrics_path: UrlPath
    """The path of the counters."""
    metrics_timeout_s: Seconds = 30.0
    """Longest wait for the counters."""
    limits: RowLimits
    """When a request is given up."""
    requests: Annotated[tuple[PlannedRequest, ...], Field(min_length=1)]
    """Each sent once, in this order, never again."""


def measure_prompts(
    plan: SessionPlan, leg: LegPaths, clock: Clock, between_rows: Callable[[int, RowClosed], None]
) -> None:
    """Record the counters, every request once, and the counters again; stop at the first row that did not end well.

    Args:
        plan: what is asked.
        leg: where the facts go; its `wire` folder is made here.
        clock: the clock of every stamp that the kernel does not give.
        between_rows: called with the row's number and its last line once its files are on disk; what it raises ends
            the session.

    Raises:
        StreamBroken: a request, or the reading of the counters, did not end well (STREAM_BROKEN, REQUEST_TIMEOUT).
        Refused: a file exists already (EXISTS).
        BrokenEvidence: a file could not be written (WRITE_FAILED).
    """
    with kernel_stamps_held(), heap_kept():
        write_once(leg.metrics_before, _metrics(plan))
        make_folder(leg.wire)
        for row in range(1, len(plan.requests) + 1):
            closed = _measure(plan, leg, row, clock)
            between_rows(row, closed)
            if closed.ended != "complete":
                with contextlib.suppress(StreamBroken):
                    write_once(leg.metrics_after, _metrics(plan))
                raise StreamBroken(_row_problem(plan, row, closed))
        write_once(leg.metrics_after, _metrics(plan))


def _measure(plan: SessionPlan, leg: LegPaths, row: int, clock: Clock) -> RowClosed:
    planned = plan.requests[row - 1]
    request = RowRequest(
        row=row, prompt_id=planned.prompt_id, host=plan.host, port=plan.port, path=plan.path, body=planned.body
    )
    return measure_row(request, RowFiles(leg.wire_bytes(row), leg.wire_reads(row)), plan.limits, clock)


def _metrics(plan: SessionPlan) -> bytes:
    return fetch_bytes(f"http://{plan.host}:{plan.port}{plan.metrics_path}", plan.metrics_timeout_s)


def _row_problem(plan: SessionPlan, row: int, closed: RowClosed) -> Problem:
    prompt_id = plan.requests[row - 1].prompt_id
    code = Code.REQUEST_TIMEOUT if closed.ended == "timeout" else Code.STREAM_BROKEN
    status = "no status" if closed.http_status is None else f"status {closed.http_status}"
    got = f"{closed.ended} ({closed.detail or status})"
    return Problem(code, f"row {row} ({prompt_id})", "a complete response", got, "read the row's wire files")
