"""The clocks of labctl, and the one protocol through which tests set them."""

import time
from typing import Protocol


class Clock(Protocol):
    """What a step may know about time."""

    def monotonic_ns(self) -> int:
        """Nanoseconds for durations; unaffected by steps of the wall clock."""

    def realtime_ns(self) -> int:
        """Nanoseconds since 1970 in UTC; for labels, and to compare with kernel stamps."""

    def boottime_ns(self) -> int:
        """Nanoseconds since boot, suspended time included."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's own clocks."""

    def monotonic_ns(self) -> int:
        """See `Clock`."""
        return time.monotonic_ns()

    def realtime_ns(self) -> int:
        """See `Clock`."""
        return time.time_ns()

    def boottime_ns(self) -> int:
        """See `Clock`."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        time.sleep(seconds)


def realtime_offset_ns(clock: Clock) -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, from the tightest of five bracketed readings."""
    best: tuple[int, int] | None = None
    for _ in range(5):
        before = clock.monotonic_ns()
        real = clock.realtime_ns()
        after = clock.monotonic_ns()
        width = after - before
        if best is None or width < best[0]:
            best = (width, real - (before + after) // 2)
    if best is None:  # pragma: no cover - range(5) is not empty
        message = "no reading"
        raise RuntimeError(message)
    return best[1]
