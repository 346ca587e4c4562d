"""The one module through which every write of labctl goes: written once, whole, and on disk before it counts."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from labctl.codes import Code
from labctl.errors import BrokenEvidence, Problem, Refused

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_folder(path: Path) -> None:
    """Create one new folder, mode 0700 whatever the umask, and put its name on disk.

    Raises:
        Refused: something has this name already (EXISTS).
        BrokenEvidence: the system takes no new folder there (WRITE_FAILED).
    """
    try:
        path.mkdir(mode=FOLDER_MODE)
        path.chmod(FOLDER_MODE)
    except FileExistsError as error:
        raise Refused(
            Problem(Code.EXISTS, str(path), "a free name", "something with this name", "choose another name")
        ) from error
    except OSError as error:
        raise _write_failed(path, error) from error
    sync_folder(path.parent)


def make_folders(path: Path) -> None:
    """Create a folder and the parents that it lacks; an existing folder is fine."""
    missing = []
    step = path
    while not step.is_dir():
        missing.append(step)
        step = step.parent
    for folder in reversed(missing):
        with contextlib.suppress(Refused):  # another process may make the same root at the same moment
            make_folder(folder)


def write_once(path: Path, data: bytes) -> None:
    """Create a file that nothing has the name of, write it whole, and put it and its name on disk.

    Raises:
        Refused: something has this name already (EXISTS).
        BrokenEvidence: the bytes could not be written or did not come back as written (WRITE_FAILED).
    """
    descriptor = open_once(path)
    try:
        try:
            os.fchmod(descriptor, FILE_MODE)
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _write_failed(path, error) from error
    sync_folder(path.parent)


def complete_once(path: Path, data: bytes) -> None:
    """As `write_once`, but a file that a crash cut short is finished; what stands there is never overwritten.

    Raises:
        BrokenEvidence: what stands there is not the beginning of the bytes (EXISTS), or writing failed (WRITE_FAILED).
    """
    if not os.path.lexists(path):
        write_once(path, data)
        return
    before = read_regular(path, limit_bytes=len(data))
    if not data.startswith(before):
        raise BrokenEvidence(
            Problem(Code.EXISTS, str(path), "the bytes that belong here", "others", "keep the folder as it is; ask why")
        )
    with AppendLog.reopen(path) as rest:
        rest.append(data[len(before) :])
    sync_folder(path.parent)


def open_once(path: Path, *, folder: int | None = None) -> int:
    """A descriptor for a new file: O_EXCL, never through a link.

    Args:
        path: the file, or its bare name where `folder` is given.
        folder: an open descriptor of the parent folder.

    Raises:
        Refused: something has this name already (EXISTS).
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(path, flags, FILE_MODE, dir_fd=folder)
    except FileExistsError as error:
        raise Refused(
            Problem(Code.EXISTS, str(path), "a free name", "something with this name", "choose another name")
        ) from error
    except OSError as error:
        raise _write_failed(path, error) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however short the single writes are."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(path: Path) -> None:
    """Put the names in a folder on disk (a no-op where folders cannot be opened).

    Raises:
        BrokenEvidence: they could not be put there (WRITE_FAILED).
    """
    if os.name == "posix":
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Put the bytes of a file on disk; through a writable descriptor, which some systems want for this.

    Raises:
        BrokenEvidence: they could not be put there (WRITE_FAILED).
    """
    _sync(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))


def replace_regenerable(path: Path, data: bytes) -> None:
    """Write a file that can be made again (schemas, docs), by rename; never used inside a run."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    write_once(scratch, data)
    scratch.replace(path)
    sync_folder(path.parent)


def read_regular(path: Path, *, limit_bytes: int) -> bytes:
    """The bytes of a regular file that is not a link; never blocks on a FIFO or a device.

    Raises:
        BrokenEvidence: absent (MISSING_FILE), not a regular file (FORBIDDEN_FILE), over the limit (TOO_LARGE), or not
            readable (READ_FAILED).
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError as error:
        raise BrokenEvidence(
            Problem(Code.MISSING_FILE, str(path), "a file", "nothing", "restore it from a copy")
        ) from error
    except OSError as error:
        got = "a symbolic link" if error.errno == errno.ELOOP else os.strerror(error.errno or 0)
        raise BrokenEvidence(
            Problem(Code.FORBIDDEN_FILE, str(path), "a regular file", got, "restore it from a copy")
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BrokenEvidence(
            Problem(Code.FORBIDDEN_FILE, str(path), "a regular file", "another kind", "restore it from a copy")
        )
    try:
        with os.fdopen(descriptor, "rb") as stream:
            data = stream.read(limit_bytes + 1)
    except OSError as error:
        got = os.strerror(error.errno or 0)
        raise BrokenEvidence(
            Problem(Code.READ_FAILED, str(path), "bytes that can be read", got, "look at the disk")
        ) from error
    if len(data) > limit_bytes:
        raise BrokenEvidence(
            Problem(Code.TOO_LARGE, str(path), f"at most {limit_bytes} bytes", "more", "restore it from a copy")
        )
    return data


class AppendLog:
    """A file of lines that only grows; each line is on disk before `append` returns."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def create(cls, path: Path) -> Self:
        """A new log; its name is on disk."""
        descriptor = open_once(path)
        os.fchmod(descriptor, FILE_MODE)
        sync_folder(path.parent)
        return cls(descriptor, path)

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """A log that is there already, to be continued at its end.

        Raises:
            BrokenEvidence: it cannot be opened for writing (WRITE_FAILED).
        """
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            return cls(os.open(path, flags), path)
        except OSError as error:
            raise _write_failed(path, error) from error

    def append(self, line: bytes) -> None:
        """Write one line, which carries its own newline, and fsync it.

        Raises:
            BrokenEvidence: the line could not be written (WRITE_FAILED).
        """
        try:
            write_all(self._descriptor, line)
            os.fsync(self._descriptor)
        except OSError as error:
            raise _write_failed(self._path, error) from error

    def close(self) -> None:
        """Close the file; errors on close are errors.

        Raises:
            BrokenEvidence: the system could not close it (WRITE_FAILED).
        """
        try:
            os.close(self._descriptor)
        except OSError as error:
            raise _write_failed(self._path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sync(path: Path, flags: int) -> None:
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _write_failed(path, error) from error


def _write_failed(path: Path, error: OSError) -> BrokenEvidence:
    return BrokenEvidence(
        Problem(
            Code.WRITE_FAILED,
            str(path),
            "the bytes on disk",
            os.strerror(error.errno or 0),
            "look at the disk; what was written stays as it is",
        )
    )
