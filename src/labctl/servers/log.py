"""Running a leg: what the server prints, byte by byte into `server.log`, up to a limit."""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from labctl.durable import FILE_MODE, open_once, sync_folder, write_all

READ_BYTES = 1 << 16
TAIL_BYTES = 4096
JOIN_S = 10.0


class ServerLog:
    """A pipe that the server prints into, and the thread that empties it.

    Up to the limit every byte goes to the file. From the limit on the file stays as it is, `on_limit` is called once,
    and the pipe is still emptied and counted, so that a server that is told to stop does not hang on its own output.
    """

    def __init__(self, path: Path, limit_bytes: int, on_limit: Callable[[], None]) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._on_limit = on_limit
        self._file = open_once(path)
        os.fchmod(self._file, FILE_MODE)
        self._read_end, self.write_end = os.pipe()
        self._thread = threading.Thread(target=self._pump, name="server-log", daemon=True)
        self._digest = hashlib.sha256()
        self._tail = b""
        self._fault: OSError | None = None
        self._is_open = True
        self._writing = threading.Lock()
        self.printed_bytes = 0
        self.kept_bytes = 0

    @property
    def sha256(self) -> str:
        """The digest of what is in the file."""
        return self._digest.hexdigest()

    @property
    def tail(self) -> str:
        """The last that was printed, each character that does not print escaped, lines kept."""
        return "\n".join(printable(line) for line in self._tail.decode("utf-8", "replace").split("\n"))

    @property
    def last_line(self) -> str:
        """The last line that holds anything, escaped; empty when nothing was printed."""
        return next((line for line in reversed(self.tail.split("\n")) if line.strip()), "")

    @property
    def is_over_limit(self) -> bool:
        """Whether more was printed than the file may hold."""
        return self.printed_bytes > self._limit_bytes

    def start(self) -> None:
        """Empty the pipe from now on; the server has its own copy of the writing end."""
        os.close(self.write_end)
        self._thread.start()

    def close(self) -> None:
        """Wait until every writer is gone, and put the file on disk; call it when the server has stopped.

        Raises:
            OSError: the file could not be written whole.
        """
        if self._thread.ident is None:
            os.close(self.write_end)
        else:
            self._thread.join(JOIN_S)
        if not self._thread.is_alive():
            os.close(self._read_end)
        with self._writing:  # a writer that survived the stop may still print; nothing of that is kept
            self._is_open = False
            try:
                if self._fault is None:
                    os.fsync(self._file)
            finally:
                os.close(self._file)
        sync_folder(self._path.parent)
        if self._fault is not None:
            raise self._fault

    def _pump(self) -> None:
        was_told = False
        while data := os.read(self._read_end, READ_BYTES):
            room_bytes = max(self._limit_bytes - self.printed_bytes, 0)
            self.printed_bytes += len(data)
            self._tail = (self._tail + data)[-TAIL_BYTES:]
            self._keep(data[:room_bytes])
            if not was_told and (self.is_over_limit or self._fault is not None):
                was_told = True
                self._on_limit()

    def _keep(self, data: bytes) -> None:
        with self._writing:
            if not data or not self._is_open or self._fault is not None:
                return
            try:
                write_all(self._file, data)
            except OSError as error:  # a full disk must not leave the server hanging on a pipe that nobody empties
                self._fault = error
                return
            self._digest.update(data)
            self.kept_bytes += len(data)


def printable(text: str) -> str:
    """The text with everything that does not print (controls, bidirectional marks, line separators) escaped."""
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii") for mark in text)
