"""How much of the worker's time is recording; a cost of ours, never a figure of the component."""

import time
from types import TracebackType


class Stopwatch:
    """Used as a context around recording; everything else since `start` is the worker's own."""

    def __init__(self) -> None:
        self.recording_ns = 0
        self._depth = 0
        self._since_ns = 0
        self._started_ns = time.monotonic_ns()

    @property
    def compute_ns(self) -> int:
        """What was not recording, until now."""
        return time.monotonic_ns() - self._started_ns - self.recording_ns

    def __enter__(self) -> None:
        if self._depth == 0:
            self._since_ns = time.monotonic_ns()
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.recording_ns += time.monotonic_ns() - self._since_ns
