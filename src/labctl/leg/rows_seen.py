"""Running a component leg: how many rows the worker has written so far, for whoever waits."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class RowsSeen:
    """Counts whole lines, reading only what is new."""

    path: Path
    size_bytes: int = 0
    _lines: int = 0

    def fresh(self) -> int:
        """The count, where it has grown since the last time; else 0."""
        before = self._lines
        after = self.count()
        return after if after > before else 0

    def count(self) -> int:
        """Whole lines so far."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self.size_bytes)
                fresh = stream.read()
        except FileNotFoundError:
            return 0
        whole = fresh.rfind(b"\n") + 1
        self.size_bytes += whole
        self._lines += fresh.count(b"\n", 0, whole)
        return self._lines
