"""A run's folders and files by directory descriptors, so that nothing can be swapped under a path while it is read."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from labctl.codes import Code
from labctl.errors import Problem
from labctl.rundir import SAFE_PART
from labctl.seal.bag import MAX_DEPTH, empty_folder, forbidden, kind_fault
from labctl.seal.manifest import PAYLOAD_PREFIX
from labctl.seal.payload_kinds import is_payload_kind

MAX_FILE_BYTES = 16 << 30
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Signature(NamedTuple):
    """What must not change about a file while it is sealed."""

    device: int
    inode: int
    mode: int
    links: int
    owner: int
    group: int
    size_bytes: int
    modified_ns: int
    changed_ns: int

    @property
    def at_rest(self) -> "Signature":
        """The same without what sealing itself changes: the mode, and with it the time of change."""
        return self._replace(mode=0, changed_ns=0)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file, by the descriptor of its folder and its bare name."""

    path: str
    folder: int
    name: str
    signature: Signature


@dataclass(slots=True)
class Tree:
    """Everything below data/; folders in the order in which they were entered, parents first."""

    folders: list[tuple[str, int]] = field(default_factory=list)
    files: list[FoundFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def signatures(self) -> dict[str, Signature]:
        """What must not change, by path."""
        return {found.path: found.signature for found in self.files}


def walk_payload(root: int, stack: ExitStack) -> Tree:
    """The tree below data/ of an open run folder; its descriptors stay open until the stack is closed.

    What must not be there is in `problems`; an `OSError` of the walk itself passes through.
    """
    tree = Tree()
    status = os.stat("data", dir_fd=root, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        tree.problems.append(forbidden("data", "a folder", "something else"))
        return tree
    _enter(root, "data", os.fstat(root).st_dev, (tree, stack))
    folded: dict[str, str] = {}
    for found in tree.files:
        twin = folded.setdefault(found.path.casefold(), found.path)
        if twin != found.path:
            tree.problems.append(forbidden(found.path, "names that differ in more than case", f"a twin of {twin}"))
    return tree


def open_folder(name: str, parent: int | None) -> int:
    """A descriptor of a folder that is not a link."""
    return os.open(name, _FOLDER_FLAGS, dir_fd=parent)


def signature_of(status: os.stat_result) -> Signature:
    """What must not change about a file while it is sealed."""
    return Signature(
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _enter(parent: int, path: str, device: int, into: tuple[Tree, ExitStack]) -> None:
    tree, stack = into
    folder = open_folder(path.rsplit("/", 1)[-1], parent)
    stack.callback(os.close, folder)
    tree.folders.append((path, folder))
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    if not names:
        tree.problems.append(empty_folder(path))
    for name in names:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        below = f"{path}/{name}"
        faults = list(_faults(below, status, device))
        tree.problems += faults
        if stat.S_ISDIR(status.st_mode) and not faults:
            _enter(folder, below, device, into)
        elif not faults:
            tree.files.append(FoundFile(below, folder, name, signature_of(status)))


def _faults(path: str, status: os.stat_result, device: int) -> Iterator[Problem]:
    if not SAFE_PART.match(path.rsplit("/", 1)[-1]):
        yield forbidden(path, "names of letters, digits, dots, hyphens and underscores", "another name")
    if status.st_dev != device:
        yield forbidden(path, "one file system", "another device")
    if stat.S_ISDIR(status.st_mode):
        if path.count("/") > MAX_DEPTH:
            yield forbidden(path, f"at most {MAX_DEPTH} folders in each other", "more")
        return
    if fault := kind_fault(status):
        yield forbidden(path, "a regular file", fault)
    else:
        yield from _file_faults(path, status)


def _file_faults(path: str, status: os.stat_result) -> Iterator[Problem]:
    if status.st_nlink != 1:
        yield forbidden(path, "one name for a file", f"{status.st_nlink} (hard links)")
    if status.st_size > MAX_FILE_BYTES:
        got = f"{status.st_size} bytes"
        yield Problem(Code.TOO_LARGE, path, f"at most {MAX_FILE_BYTES} bytes", got, "find out what wrote it")
    if SAFE_PART.match(path.rsplit("/", 1)[-1]) and not is_payload_kind(path.removeprefix(PAYLOAD_PREFIX)):
        yield Problem(Code.EXTRA_FILE, path, "a file of a known kind", "another", "move it away")
