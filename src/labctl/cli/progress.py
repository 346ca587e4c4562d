"""Progress of a run on stderr: one line that is redrawn on a terminal, one line an event elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from labctl.cli import show

REDRAW_S = 0.2
UNITS = {
    "row": ("prompt", "{bytes} bytes received"),
    "worker_row": ("row", "{bytes} bytes recorded"),
    "rank": ("rank", "ended"),
}


class ProgressLine:
    """Shows which leg and which prompt, row or rank it is at, bytes so far, and the time that is left at this pace."""

    def __init__(self, legs: int) -> None:
        self._legs = legs
        self._legs_begun = 0
        self._started_s = time.monotonic()
        self._first_row_s: float | None = None
        self._rows_done = 0
        self._row_of_leg = 0
        self._drawn_s = 0.0
        self._is_open = False

    def announce(self, text: str) -> None:
        """A step of the run begins."""
        self._finish_line()
        if text.startswith("leg "):
            self._legs_begun += 1
            self._row_of_leg = 0
        show.progress(f"[{self._elapsed()}] {text}")

    def leg(self, event: dict[str, object]) -> None:
        """A leg says how far it is; facts that are not understood are not shown."""
        unit = UNITS.get(str(event.get("event")))
        if unit is None:
            return
        row, of, size = event.get("row"), event.get("of"), event.get("bytes")
        if not (isinstance(row, int) and isinstance(of, int) and isinstance(size, int)):
            return
        self._rows_done += row - self._row_of_leg  # whoever looks now and then sees several at once
        self._row_of_leg = row
        self._first_row_s = self._first_row_s or time.monotonic()
        text = f"[{self._elapsed()}]   {unit[0]} {row} of {of}, {unit[1].format(bytes=size)}, {self._left(of)}"
        if sys.stderr.isatty():
            self._redraw(text)
        elif row == of:
            show.progress(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish_line()

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._started_s:6.1f} s"

    def _left(self, rows_a_leg: int) -> str:
        rows = rows_a_leg * self._legs
        if self._first_row_s is None or self._rows_done < 2:  # noqa: PLR2004 (a pace needs two rows)
            return "time left unknown"
        pace_s = (time.monotonic() - self._first_row_s) / (self._rows_done - 1)
        return f"about {pace_s * (rows - self._rows_done):.0f} s left"

    def _redraw(self, text: str) -> None:
        now = time.monotonic()
        if now - self._drawn_s < REDRAW_S:
            return
        self._drawn_s = now
        self._is_open = True
        show.redraw(text)

    def _finish_line(self) -> None:
        if self._is_open:
            show.error("")
            self._is_open = False
