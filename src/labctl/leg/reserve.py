"""Running a leg: room on the disk of its records, held until the server has stopped, so that a full disk has an end."""

import errno
import os
import secrets
from pathlib import Path
from typing import Self

from labctl.codes import Code
from labctl.durable import FILE_MODE
from labctl.errors import PreflightFailed, Problem

RESERVE_BYTES = 4 << 20
_WITHOUT_NAME = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}


class Reserve:
    """A file without a name: it is no part of the run, and the kernel frees it when this process ends, however."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, folder: Path) -> Self:
        """Take the room.

        Raises:
            PreflightFailed: it is not there (DISK_FULL).
        """
        try:
            descriptor = _open_nameless(folder)
            try:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            got, do = os.strerror(error.errno or 0), "free space there"
            expected = f"{RESERVE_BYTES} bytes in reserve"
            raise PreflightFailed(Problem(Code.DISK_FULL, str(folder), expected, got, do)) from error
        return cls(descriptor)

    def release(self) -> None:
        """Give the room back for the records of how the leg ended; once more is no harm."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _open_nameless(folder: Path) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        if error.errno not in _WITHOUT_NAME:
            raise
    path = folder / f"reserve-{secrets.token_hex(8)}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    path.unlink()
    return descriptor
