"""Canonical JSON, and files that are on disk before their writer goes on."""

import json
import os
from pathlib import Path
from threading import Event, Thread

FILE_MODE = 0o600
FOLLOW_S = 0.25


def canonical(value: object) -> bytes:
    """Sorted keys, UTF-8, no spaces, no NaN, one final newline."""
    # Records are trees that were built here; looking for circles in them costs a tenth of the encoding.
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode("utf-8", "backslashreplace") + b"\n"


def write_once(path: Path, data: bytes) -> None:
    """Create a file that nothing has the name of, and put it and its name on disk."""
    descriptor = _create(path)
    try:
        _write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _sync_folder(path.parent)


class Lines:
    """A file of lines that only grows. The disk follows beside the work, and holds everything after `settle`.

    A line is with the system when `append` returns, so it outlives the process. A power cut ends the leg in any case,
    and takes at most the lines of the last `FOLLOW_S` seconds: a sync after each line would cost the rows their time.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = _create(path)
        self._ended = Event()
        self._errors: list[OSError] = []
        self._disk = Thread(target=self._follow, daemon=True)
        self._disk.start()
        _sync_folder(path.parent)

    def append(self, value: object) -> bytes:
        """Write one line of canonical JSON, and give its bytes."""
        line = canonical(value)
        _write(self._descriptor, line)
        return line

    def settle(self) -> None:
        """Wait until every line is on disk; no line may follow."""
        self._ended.set()
        self._disk.join()
        if self._errors:
            raise self._errors[0]
        os.fsync(self._descriptor)

    def _follow(self) -> None:
        try:
            while not self._ended.wait(FOLLOW_S):
                os.fsync(self._descriptor)
        except OSError as error:
            self._errors.append(error)


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
