"""The bytes of a marker on disk: written, read back, and found in the folder that was checked."""

import os
from pathlib import Path

from labctl.codes import Code
from labctl.durable import FILE_MODE, write_all
from labctl.errors import BrokenEvidence, Problem


def fill_marker(descriptor: int, data: bytes) -> None:
    """Write a new marker's bytes to disk, and close it."""
    try:
        os.fchmod(descriptor, FILE_MODE)
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_bytes(folder: int, path: Path, data: bytes) -> None:
    """Read a marker back from its open folder.

    Raises:
        BrokenEvidence: it holds other bytes (MARKER_WRITE).
    """
    descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as stream:
        if stream.read(len(data) + 1) != data:
            do = "look at the disk"
            raise BrokenEvidence(Problem(Code.MARKER_WRITE, str(path), "the bytes as written", "other bytes", do))


def require_in_place(folder: int, path: Path) -> None:
    """Hold the open folder against what lies at its path now.

    Raises:
        BrokenEvidence: they are two (UNSAFE_ROOT).
    """
    held, named = os.fstat(folder), os.stat(path, follow_symlinks=False)  # noqa: PTH116 (the pair reads alike)
    if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino):
        do = "find out who moved it"
        raise BrokenEvidence(Problem(Code.UNSAFE_ROOT, str(path), "the folder that was checked", "another", do))
