"""Where labctl may keep what must last: file systems, free space, and folders that nobody else can write to."""

import ctypes
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from labctl.codes import Code
from labctl.errors import Problem, Refused

_MAGIC = {
    0xEF53: "ext4",  # ext2 and ext3 share it
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x2FC12FC1: "zfs",
    0x794C7630: "overlay",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x6969: "nfs",
    0x65735546: "fuse",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x01021997: "9p",
}
_STATFS_BYTES = 512
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def file_system_type(path: Path) -> str:
    """The kind of file system that holds a path, by `statfs`; its number in hexadecimal where it has no name here.

    Raises:
        Refused: the path cannot be looked at (UNSAFE_ROOT).
    """
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        raise Refused(_unsafe(path, "a path on a file system", os.strerror(ctypes.get_errno())))
    magic = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    return _MAGIC.get(magic, f"0x{magic:x}")


def free_bytes(path: Path) -> int:
    """Bytes that an ordinary user may still write to the file system of a path."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def is_writable(path: Path) -> bool:
    """Whether we may write below a folder: its file system is not read-only, and its mode lets us."""
    return not os.statvfs(path).f_flag & os.ST_RDONLY and os.access(path, os.W_OK | os.X_OK)


def open_trusted_folder(path: Path, anchor: Path) -> int:
    """A descriptor of a folder, reached through no link; the caller closes it.

    Args:
        path: the folder.
        anchor: the folder, above it or itself, from which on nobody but us may be able to write.

    Raises:
        Refused: with everything on the way that is not as it must be (UNSAFE_ROOT).
    """
    target, trusted = (Path(os.path.abspath(one)) for one in (path, anchor))  # noqa: PTH100 (links are refused, not followed)
    if not target.is_relative_to(trusted):
        raise Refused(_unsafe(target, f"a folder below the trusted anchor {trusted}", "one outside it"))
    problems: list[Problem] = []
    descriptor = _walk(target, trusted, problems)
    if problems:
        os.close(descriptor)
        raise Refused(problems)
    return descriptor


def _walk(target: Path, trusted: Path, problems: list[Problem]) -> int:
    descriptor = _enter(None, Path(target.anchor))
    for folder in (*reversed(target.parents), target):
        if folder != Path(target.anchor):
            above = descriptor
            try:
                descriptor = _enter(above, folder)
            finally:
                os.close(above)
        if folder.is_relative_to(trusted):
            problems += _trust_problems(folder, os.fstat(descriptor))
    return descriptor


def _enter(parent: int | None, folder: Path) -> int:
    try:
        return os.open(folder.name or str(folder), _FLAGS, dir_fd=parent)
    except OSError as error:
        raise Refused(_unsafe(folder, "a folder that is no link", _kind(folder, error))) from error


def _kind(folder: Path, error: OSError) -> str:
    return "a symbolic link" if folder.is_symlink() else os.strerror(error.errno or 0)


def _trust_problems(folder: Path, status: os.stat_result) -> Iterator[Problem]:
    if status.st_mode & stat.S_ISVTX and status.st_uid == 0:
        return  # in a sticky folder of root, nobody can replace what is ours
    if status.st_uid != os.geteuid():
        yield _unsafe(folder, f"owner {os.geteuid()}", f"owner {status.st_uid}")
    if status.st_mode & _OTHERS_MAY_WRITE:
        yield _unsafe(folder, "a mode without write for group and others", f"mode {stat.S_IMODE(status.st_mode):04o}")


def _unsafe(folder: Path, expected: str, got: str) -> Problem:
    do = "use a folder of your own (`chmod go-w`), or set `storage.trusted_anchor` in the host profile"
    return Problem(Code.UNSAFE_ROOT, str(folder), expected, got, do)
