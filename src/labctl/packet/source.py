"""Source trees by content: a work tree held against its commit, and a commit's files written out as a snapshot."""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from labctl.codes import Code
from labctl.digest import dirhash, sha256_hex
from labctl.durable import FILE_MODE, FOLDER_MODE, make_folder, open_once, write_all
from labctl.errors import DirtySource, Problem
from labctl.packet.git_command import refuse_hidden_state, run_git
from labctl.packet.git_objects import FileMode, ObjectReader, TreeFile

MAX_NAMED = 50
_KINDS = {stat.S_IFREG: "a file", stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder"}


@dataclass(frozen=True, slots=True)
class VerifiedTree:
    """A commit whose work tree holds exactly its files."""

    commit: str
    tree_dirhash: str
    files: int


def head_commit(repository: Path) -> str:
    """The full id of the commit that is checked out.

    Raises:
        DirtySource: there is none (BAD_COMMIT).
    """
    try:
        return run_git(repository, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    except DirtySource as error:
        do = "commit the campaign's files once with `git add` and `git commit`"
        found = (replace(problem, expected="a commit that is checked out", do=do) for problem in error.problems)
        raise DirtySource(found) from error


def verify_work_tree(repository: Path, commit: str) -> VerifiedTree:
    """Hold every tracked file of a work tree against the commit's blobs: bytes and executable bit.

    Raises:
        DirtySource: with every file that differs (DIRTY_SOURCE), or what the repository hides.
    """
    refuse_hidden_state(repository)
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    with ObjectReader(repository) as reader:
        for file in reader.files(commit):
            blob = reader.read(file.blob, "blob")
            digests[file.path] = sha256_hex(blob)
            if got := difference(repository / file.path, file.mode, blob):
                problems.append(_dirty(repository / file.path, got))
    if problems:
        raise DirtySource(_capped(problems, repository))
    return VerifiedTree(commit, dirhash(digests), len(digests))


def export_snapshot(repository: Path, commit: str, target: Path) -> str:
    """Write a commit's files, from its objects alone, into a new folder; the `dirHash` of the blobs.

    Raises:
        DirtySource: the repository hides something, or a link leads out of the tree.
        Refused: something has the target's name (EXISTS).
    """
    refuse_hidden_state(repository)
    make_folder(target)
    with ObjectReader(repository) as reader:
        return _write_tree(target, ((file, reader.read(file.blob, "blob")) for file in reader.files(commit)))


def copy_work_tree(repository: Path, target: Path) -> tuple[str, int]:
    """Write the files that git tracks, as they lie in the work tree, into a new folder: for rehearsals only.

    Returns:
        The `dirHash` of what was written, and how many files.

    Raises:
        DirtySource: a submodule, or a link that leads out of the tree.
        Refused: something has the target's name (EXISTS).
    """
    make_folder(target)
    files = tuple(_tracked(repository))
    return _write_tree(target, files), len(files)


def committer_mails(repository: Path, commit: str, path: str) -> tuple[str, ...]:
    """The mail addresses behind a commit, and behind every commit in its history that touched a file.

    Raises:
        DirtySource: the history cannot be read (BAD_COMMIT).
    """
    listed = run_git(repository, "rev-list", "--full-history", commit, "--", path).decode().split()
    with ObjectReader(repository) as reader:
        mails = {mail for found in (commit, *listed) for mail in reader.commit(found).mails}
    return tuple(sorted(mails))


def _write_tree(target: Path, files: Iterable[tuple[TreeFile, bytes]]) -> str:
    digests: dict[str, str] = {}
    for file, data in files:
        path = target / file.path
        _make_parents(target, path.parent)
        if file.mode is FileMode.LINK:
            _write_link(path, file.path, data)
        else:
            _write_file(path, data, FOLDER_MODE if file.mode is FileMode.EXECUTABLE else FILE_MODE)
        digests[file.path] = sha256_hex(data)
    return dirhash(digests)


def _make_parents(target: Path, folder: Path) -> None:
    if folder != target and not folder.is_dir():
        _make_parents(target, folder.parent)
        folder.mkdir(mode=FOLDER_MODE)


def _write_file(path: Path, data: bytes, mode: int) -> None:
    # a snapshot is made again when it is lost, so it is written once but not synced
    descriptor = open_once(path)
    try:
        os.fchmod(descriptor, mode)
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _write_link(path: Path, shown: str, data: bytes) -> None:
    goal = PurePosixPath(os.fsdecode(data))
    rises = sum(part == ".." for part in goal.parts)
    # `..` only at the start and no further than the tree's top: then no chain of links can leave it
    if goal.is_absolute() or ".." in goal.parts[rises:] or rises > shown.count("/"):
        do = "replace the link by a file, or link inside the tree"
        problem = Problem(Code.FORBIDDEN_FILE, shown, "a link that stays inside the tree", repr(str(goal))[:120], do)
        raise DirtySource(problem)
    path.symlink_to(goal)


def _tracked(repository: Path) -> Iterator[tuple[TreeFile, bytes]]:
    for entry in run_git(repository, "ls-files", "-z", "--stage").split(b"\0")[:-1]:
        fields, _, name = entry.partition(b"\t")
        mode, path = fields.split()[0].decode(), os.fsdecode(name)
        if mode == "160000":
            do = "keep the files in this repository"
            raise DirtySource(Problem(Code.HIDDEN_GIT_STATE, f"{repository}: {path}", "a file", "a submodule", do))
        found = repository / path
        if found.is_symlink():
            yield TreeFile(path, FileMode.LINK, ""), os.fsencode(found.readlink())
        elif found.is_file():
            is_executable = found.stat().st_mode & stat.S_IXUSR
            yield TreeFile(path, FileMode.EXECUTABLE if is_executable else FileMode.PLAIN, ""), found.read_bytes()


def difference(path: Path, mode: FileMode, blob: bytes) -> str | None:
    """How what lies at a path differs from a tree's entry, or None where it does not."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    if mode is FileMode.LINK:
        is_equal = stat.S_ISLNK(status.st_mode) and os.fsencode(path.readlink()) == blob
        return None if is_equal else "another link, or none"
    if not stat.S_ISREG(status.st_mode):
        return _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")
    if status.st_size != len(blob) or path.read_bytes() != blob:
        return "other bytes"
    is_executable = bool(status.st_mode & stat.S_IXUSR)
    return None if is_executable == (mode is FileMode.EXECUTABLE) else "another executable bit"


def _dirty(path: Path, got: str) -> Problem:
    return Problem(Code.DIRTY_SOURCE, str(path), "the file as committed", got, "commit the change, or undo it")


def _capped(problems: list[Problem], repository: Path) -> list[Problem]:
    rest = len(problems) - MAX_NAMED
    if rest <= 0:
        return problems
    return [*problems[:MAX_NAMED], _dirty(repository, f"{rest} more files that differ")]
