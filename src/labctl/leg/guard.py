"""Running a leg: the process that watches the lifeline and outlives the leg's worker, so that no server is left.

Theory of operation. A leg is two processes: this guard, which the controller started, and the worker that it forked,
which starts the server and measures. The guard has one thread and does three things: it reads the lifeline, it passes
signals on, and after the worker it kills whatever is left below.

- The controller ends or falls silent: the guard asks the worker to end, once a second until it has.
- The guard is killed: the kernel sends the worker SIGTERM, and the leg ends in order.
- The worker is killed: the kernel kills the server's root, the rest becomes the guard's (which is a subreaper), and the
  guard kills it, new sessions or not.
- Guard and worker are killed in one moment: the kernel kills the server's root; only a process that the server put
  aside could stay. Worker and guard have sessions of their own, so no signal to a group reaches both.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from labctl.clock import SystemClock
from labctl.host.parentage import become_subreaper, die_with_parent
from labctl.host.process_facts import shared_segments, still_there
from labctl.host.processes import descendants, kill_descendants
from labctl.leg.interruption import LIFELINE_SIGNAL

LIFELINE = 0
READ_BYTES = 4096
ASK_AGAIN_S = 1.0
KILL_WAIT_S = 10.0
FAILED = 4


def stand_guard(work: Callable[[], int], silence_s: float) -> int:
    """Run the work in a child process, end it when the lifeline is cut, and leave nothing of it behind.

    Args:
        work: what the worker does; its result is the exit status.
        silence_s: seconds without a byte on standard input after which the lifeline counts as cut.
    """
    become_subreaper()
    guard_pid = os.getpid()
    worker_pid = os.fork()
    if worker_pid == 0:
        _work(work, guard_pid)
    status = _Guard(worker_pid, silence_s).watch()
    return status if status >= 0 else _end_in_its_place()


def _end_in_its_place() -> int:
    """Do for a worker that was killed what it would have done; its folder stays as it left it."""
    segments = shared_segments(descendants(os.getpid()))
    for process in kill_descendants(KILL_WAIT_S, SystemClock()):
        sys.stderr.write(f"process {process.pid} of a killed leg is left; end it\n")
    for path in still_there(segments):
        sys.stderr.write(f"shared memory {path} of a killed leg is left; remove it\n")
    sys.stderr.flush()
    return FAILED


def _work(work: Callable[[], int], guard_pid: int) -> None:
    os.setsid()
    become_subreaper()
    die_with_parent(guard_pid, signal.SIGTERM)
    os._exit(work())


class _Guard:
    def __init__(self, worker_pid: int, silence_s: float) -> None:
        self._worker_pid = worker_pid
        self._silence_s = silence_s
        self._asked: signal.Signals | None = None
        self._heard_s = time.monotonic()

    def watch(self) -> int:
        worker = os.pidfd_open(self._worker_pid)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, _do_nothing)
        poll = select.poll()
        poll.register(worker, select.POLLIN)
        poll.register(LIFELINE, select.POLLIN)
        ready: set[int] = set()
        while worker not in ready:
            ready = {descriptor for descriptor, _ in poll.poll(ASK_AGAIN_S * 1000)}
            if LIFELINE in ready and not self._hear():
                poll.unregister(LIFELINE)
            if self._asked is None and time.monotonic() - self._heard_s > self._silence_s:
                self._asked = LIFELINE_SIGNAL
            self._ask(worker)
        os.close(worker)
        return os.waitstatus_to_exitcode(os.waitpid(self._worker_pid, 0)[1])

    def _hear(self) -> bool:
        if os.read(LIFELINE, READ_BYTES):
            self._heard_s = time.monotonic()
            return True
        self._asked = self._asked or LIFELINE_SIGNAL
        return False

    def _ask(self, worker: int) -> None:
        if self._asked is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(worker, self._asked)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._asked = self._asked or signal.Signals(number)
        os.kill(self._worker_pid, self._asked)  # not reaped yet, so the id is the worker's


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    return
