"""Running a component leg: one worker on one card, bounded in time, output and memory, and looked at from outside."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import write_once
from labctl.errors import LegInterrupted, Problem, WorkerFailed
from labctl.host.process_facts import SharedSegment, see_process, shared_segments, still_there
from labctl.host.process_state import address_space, cpus_of, is_paused
from labctl.host.processes import send_signal
from labctl.leg.cards import bind_to_card, card_afterwards
from labctl.leg.children import Child, ChildCommand, Children
from labctl.leg.closing import always_ended
from labctl.leg.interruption import Interruption
from labctl.leg.private_folders import remove_private_folders
from labctl.leg.progress import Progress
from labctl.leg.reserve import Reserve
from labctl.leg.rows_seen import RowsSeen
from labctl.records.card_order import ComponentOrder
from labctl.records.devices import Card
from labctl.records.worker import WorkerPostflight, WorkerProcess
from labctl.rundir import LegPaths

POLL_S = 0.02


@dataclass(slots=True)
class ComponentLeg:
    """What one worker is run with, and what was seen of it."""

    order: ComponentOrder
    interruption: Interruption
    progress: Progress
    clock: Clock
    rows_completed: int = 0
    segments: set[SharedSegment] = field(default_factory=set)
    process: WorkerProcess | None = None
    pauses: int = 0
    has_timed_out: bool = False

    @property
    def leg(self) -> LegPaths:
        """Where the records go."""
        return LegPaths(Path(self.order.paths.leg))


def run_component_leg(leg: ComponentLeg) -> None:
    """Bind to the card, run the worker to its end, look at it from outside, and prove that nothing is left.

    Raises:
        LegFailed: the card is another one, the worker failed, a signal came, or something was left.
        BrokenEvidence: a record could not be written.
    """
    before = bind_to_card(leg.order, leg.clock)
    reserve = Reserve.take(leg.leg.root)
    children = Children(leg.clock)
    with always_ended(lambda: _ended(leg, children, before, reserve)):
        worker = children.start(_command(leg.order))
        leg.progress.tell("started", pid=worker.identity.pid)
        with leg.interruption.allowed():
            _watch(leg, worker, children)
        _require_success(leg, worker)


def _command(order: ComponentOrder) -> ChildCommand:
    return ChildCommand(
        argv=order.argv,
        environment=order.environment,
        working=Path(order.paths.working),
        log=LegPaths(Path(order.paths.leg)).worker_log,
        memory_limit_bytes=order.limits.memory_limit_bytes,
    )


def _watch(leg: ComponentLeg, worker: Child, children: Children) -> None:
    """Wait for the end of the worker, and look at it when it pauses with all its tensors alive."""
    deadline_ns = worker.started_mono_ns + leg.order.limits.timeout_s * 1_000_000_000
    rows = RowsSeen(leg.leg.rows)
    while worker.exit_status(leg.clock) is None:
        if leg.clock.monotonic_ns() > deadline_ns:
            leg.has_timed_out = True
            raise WorkerFailed(
                _problem(leg, Code.WORKER_TIMEOUT, f"an end within {leg.order.limits.timeout_s} s", "none")
            )
        if worker.log_bytes() > leg.order.limits.log_limit_bytes:
            expected = f"at most {leg.order.limits.log_limit_bytes} bytes printed"
            raise LegInterrupted(_problem(leg, Code.LOG_LIMIT, expected, "more"))
        if is_paused(worker.identity):
            _observe(leg, worker, children, rows)
        if count := rows.fresh():
            leg.rows_completed = count
            leg.progress.tell("worker_row", row=count, of=_row_count(leg.order), bytes=rows.size_bytes)
        leg.clock.sleep(POLL_S)


def _row_count(order: ComponentOrder) -> int:
    return len(order.work.arms) * len(order.work.cases) * order.work.repeats


def _observe(leg: ComponentLeg, worker: Child, children: Children, rows: RowsSeen) -> None:
    leg.pauses += 1
    if leg.pauses == 1:
        family = children.family()
        allowed = leg.order.environment.keys()
        others = (see_process(process, allowed) for process in family if process != worker.identity)
        leg.segments.update(shared_segments(family))
        write_once(leg.leg.maps, address_space(worker.identity))
        leg.process = WorkerProcess(
            started_mono_ns=worker.started_mono_ns,
            root=see_process(worker.identity, allowed),
            observed_mono_ns=leg.clock.monotonic_ns(),
            tree=tuple(seen for seen in others if seen is not None),
            cpus=cpus_of(worker.identity),
            pauses=leg.pauses,
            rows_seen=rows.count(),
        )
    send_signal(worker.identity, signal.SIGCONT)


def _require_success(leg: ComponentLeg, worker: Child) -> None:
    status = worker.exit_status(leg.clock)
    if status != 0:
        got = f"signal {signal.Signals(-status).name}" if status is not None and status < 0 else f"exit status {status}"
        said = _last_line(worker)
        raise WorkerFailed(_problem(leg, Code.WORKER_FAILED, "exit status 0", f"{got}; {said}"))


def _problem(leg: ComponentLeg, code: Code, expected: str, got: str) -> Problem:
    return Problem(code, f"the worker on card {leg.order.card.identity}", expected, got, "read worker.log")


def _last_line(worker: Child) -> str:
    lines = worker.command.log.read_bytes()[-4000:].decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "nothing")
    return f"its last line: {''.join(mark for mark in last if mark.isprintable())[:300]}"


def _ended(leg: ComponentLeg, children: Children, before: Card, reserve: Reserve) -> tuple[Problem, ...]:
    leg.progress.tell("stopping")
    worker = children.started[0] if children.started else None
    still_ran = bool(children.running())
    leg.segments.update(shared_segments(children.family()))
    outlived = children.outlived()
    killed, left = children.end(leg.order.limits.stop_timeout_s)
    ended_mono_ns = leg.clock.monotonic_ns()
    leg.rows_completed = RowsSeen(leg.leg.rows).count()
    reserve.release()  # nobody is left who could fill it: the records of the end get the room
    if worker is None:
        return remove_private_folders(leg.order.paths.scratch)
    log_bytes, log_sha256 = worker.closed_log(leg.order.limits.log_limit_bytes)
    postflight = WorkerPostflight(
        ended_mono_ns=ended_mono_ns,
        exit_status=worker.exit_status(leg.clock),
        timed_out=leg.has_timed_out,
        stopped_by_us=still_ran,
        killed=killed,
        processes_left=left,
        shared_memory_left=still_there(leg.segments),
        log_bytes=log_bytes,
        log_sha256=log_sha256,
        card=card_afterwards(leg.order, before, leg.clock),
        outlived=outlived,
    )
    write_once(leg.leg.process, (leg.process or _unobserved(leg, worker)).canonical())
    write_once(leg.leg.postflight, postflight.canonical())
    return (*_left(postflight, leg), *remove_private_folders(leg.order.paths.scratch))


def _unobserved(leg: ComponentLeg, worker: Child) -> WorkerProcess:
    return WorkerProcess(
        started_mono_ns=worker.started_mono_ns,
        root=worker.seen,
        observed_mono_ns=None,
        tree=(),
        cpus=(),
        pauses=leg.pauses,
        rows_seen=leg.rows_completed,
    )


def _left(postflight: WorkerPostflight, leg: ComponentLeg) -> Iterator[Problem]:
    found = [
        ("processes", ", ".join(map(str, postflight.processes_left))),
        ("shared memory", ", ".join(postflight.shared_memory_left)),
    ]
    found += [(f"card {leg.order.card.identity}", text) for text in postflight.card.problems] if postflight.card else []
    do = "end or remove it by hand before the next run"
    return (Problem(Code.LEFTOVER, what, "nothing after the worker", got, do) for what, got in found if got)
