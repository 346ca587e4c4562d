"""Running a leg: how signals end a measurement, once, and never while the leg is closing."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from labctl.codes import Code
from labctl.errors import LegInterrupted, Problem

LIFELINE_SIGNAL = signal.SIGUSR1
LOG_LIMIT_SIGNAL = signal.SIGUSR2
REPEAT_NS = 5_000_000_000
REASONS = {
    signal.SIGTERM: (Code.INTERRUPTED, "no signal", "SIGTERM"),
    signal.SIGINT: (Code.INTERRUPTED, "no signal", "SIGINT"),
    LIFELINE_SIGNAL: (Code.LIFELINE_CUT, "a byte on the lifeline each second", "its end, or silence"),
    LOG_LIMIT_SIGNAL: (Code.LOG_LIMIT, "a server log within the registered limit, on a disk with room", "more"),
}


class Interruption:
    """Turns the first signal into one `LegInterrupted` in the main thread, where the leg has said that it may end.

    A signal that comes while the leg is starting or closing is kept and met at the next place where the leg may end. An
    exception that a signal raised can be lost where Python cannot pass it on (in a finalizer); the guard repeats its
    signal every second, and a repeated one raises again after a while.
    """

    def __init__(self) -> None:
        self._asked: signal.Signals | None = None
        self._may_end = False
        self._raised_ns = -REPEAT_NS

    def install(self) -> None:
        """Take over the signals; SIGHUP does nothing here from now on, and what it always does in the server."""
        for number in REASONS:
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, _do_nothing)

    def check(self) -> None:
        """End here when a signal has come.

        Raises:
            LegInterrupted: one has (INTERRUPTED, LIFELINE_CUT, LOG_LIMIT).
        """
        if self._asked is not None:
            raise _interrupted(self._asked)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Within this block a signal raises at once.

        Raises:
            LegInterrupted: a signal came before or within the block.
        """
        self._may_end = True
        try:
            self.check()
            yield
            self.check()
        finally:
            self._may_end = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._asked = self._asked or signal.Signals(number)
        now_ns = time.monotonic_ns()
        if self._may_end and now_ns - self._raised_ns > REPEAT_NS:
            self._raised_ns = now_ns
            raise _interrupted(self._asked)


def ask_to_end_for_log() -> None:
    """Tell this process, from any thread, that the server's log is full."""
    signal.pthread_kill(threading.main_thread().ident or 0, LOG_LIMIT_SIGNAL)


def _interrupted(number: signal.Signals) -> LegInterrupted:
    code, expected, got = REASONS[number]
    return LegInterrupted(Problem(code, "leg", expected, got, "look at who ended the run"))


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    # A handler, unlike SIG_IGN, is not inherited by the server.
    return
