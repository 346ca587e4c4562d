"""The run's own record of its steps: a hash chain with one writer, driven through the protocol table."""

from labctl.clock import Clock
from labctl.digest import sha256_hex
from labctl.durable import AppendLog
from labctl.protocol import Event, Progress
from labctl.records.run import NOTHING_SHA256, JournalEntry
from labctl.rundir import RunPaths


class Journal:
    """Appends one fsynced line per step; an illegal step is a `RuntimeError` before anything is written."""

    def __init__(self, paths: RunPaths, progress: Progress, clock: Clock) -> None:
        self._log = AppendLog.create(paths.journal)
        self._progress = progress
        self._clock = clock
        self._previous = NOTHING_SHA256
        self._seq = 0

    @property
    def progress(self) -> Progress:
        """Where the run stands."""
        return self._progress

    def record(self, event: Event, leg: str | None = None, detail: str = "") -> None:
        """Write down one step.

        Raises:
            RuntimeError: the protocol does not allow the step here.
            BrokenEvidence: the line could not be written.
        """
        following = self._progress.advance(event, leg)
        entry = JournalEntry(
            seq=self._seq,
            prev=self._previous,
            event=event,
            leg=leg,
            detail=detail,
            wall_ns=self._clock.realtime_ns(),
            mono_ns=self._clock.monotonic_ns(),
        )
        line = entry.canonical()
        self._log.append(line)
        self._previous = sha256_hex(line)
        self._seq += 1
        self._progress = following

    def close(self) -> None:
        """Close the file; nothing is written after this."""
        self._log.close()
