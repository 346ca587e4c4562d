"""Read a commit's tree by content: every object that git gives is hashed again, and no index or filter is asked."""

import hashlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from labctl.codes import Code
from labctl.errors import DirtySource, Problem
from labctl.packet.git_command import git_arguments, git_environment

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PERSON = re.compile(rb"(?:author|committer) [^\n]*<([^<>\n]*)> -?[0-9]+ [-+][0-9]{4}")
_SHA1_DIGITS = 40
_MAX_DEPTH = 64


class FileMode(StrEnum):
    """What a blob is in the work tree."""

    PLAIN = "100644"
    EXECUTABLE = "100755"
    LINK = "120000"


@dataclass(frozen=True, slots=True)
class TreeFile:
    """One file of a commit's tree."""

    path: str
    mode: FileMode
    blob: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its tree, and the mail addresses of those who made it."""

    tree: str
    mails: tuple[str, ...]


class ObjectReader:
    """Objects of one repository by full id, through one `git cat-file --batch`."""

    def __init__(self, repository: Path) -> None:
        self._where = str(repository)
        self._process = subprocess.Popen(
            [*git_arguments(repository), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=git_environment(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe(self._process.stdin).close()
        self._process.wait()
        self._pipe(self._process.stdout).close()

    def read(self, object_id: str, kind: str) -> bytes:
        """The content of one object.

        Raises:
            DirtySource: not a full id, not there, of another kind, or not what its id says (BAD_COMMIT).
        """
        if not _FULL_ID.fullmatch(object_id):
            raise self._bad(object_id, "a full object id of 40 or 64 hex digits", "another text")
        header = self._ask(object_id).split()
        if len(header) != 3:  # noqa: PLR2004 (id, kind, size)
            raise self._bad(object_id, f"a {kind}", "no such object")
        data = self._pipe(self._process.stdout).read(int(header[2]))
        self._pipe(self._process.stdout).read(1)
        if header[1].decode() != kind:
            raise self._bad(object_id, f"a {kind}", f"a {header[1].decode()}")
        if object_digest(kind, data, object_id) != object_id:
            raise self._bad(object_id, "content that hashes to its id", "other content")
        return data

    def commit(self, object_id: str) -> Commit:
        """One commit.

        Raises:
            DirtySource: see `read`.
        """
        data = self.read(object_id, "commit")
        headers = data.partition(b"\n\n")[0].split(b"\n")
        mails = {match[1].decode("utf-8", "replace").lower() for line in headers if (match := _PERSON.fullmatch(line))}
        return Commit(headers[0].removeprefix(b"tree ").decode("ascii", "replace"), tuple(sorted(mails)))

    def files(self, commit: str) -> Iterator[TreeFile]:
        """Every file of a commit's tree, in the tree's order.

        Raises:
            DirtySource: see `read`; also for a submodule (HIDDEN_GIT_STATE) or an unsafe name (FORBIDDEN_FILE).
        """
        yield from self._walk(self.commit(commit).tree, "", 0)

    def _walk(self, tree: str, prefix: str, depth: int) -> Iterator[TreeFile]:
        if depth > _MAX_DEPTH:
            raise self._bad(tree, f"at most {_MAX_DEPTH} nested folders", "more")
        for mode, name, child in self._entries(tree, prefix):
            if mode == "40000":
                yield from self._walk(child, f"{prefix}{name}/", depth + 1)
            elif mode in tuple(FileMode):
                yield TreeFile(prefix + name, FileMode(mode), child)
            else:
                raise self._forbidden(prefix + name, mode)

    def _entries(self, tree: str, prefix: str) -> Iterator[tuple[str, str, str]]:
        data = self.read(tree, "tree")
        width, seen = len(tree) // 2, set[str]()
        while data:
            head, _, rest = data.partition(b"\0")
            mode, _, raw_name = head.decode("ascii", "surrogateescape").partition(" ")
            name = raw_name.encode("ascii", "surrogateescape").decode("utf-8", "replace")
            if not _is_safe_name(name) or name in seen:
                problem = Problem(
                    Code.FORBIDDEN_FILE,
                    f"{self._where}: {prefix}{name!r}",
                    "a plain name, once",
                    "another",
                    "rename it",
                )
                raise DirtySource(problem)
            seen.add(name)
            yield mode, name, rest[:width].hex()
            data = rest[width:]

    def _ask(self, object_id: str) -> bytes:
        stdin = self._pipe(self._process.stdin)
        try:
            stdin.write(object_id.encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return b""
        return self._pipe(self._process.stdout).readline()

    def _forbidden(self, path: str, mode: str) -> DirtySource:
        got = "a submodule" if mode == "160000" else f"an entry of mode {mode}"
        do = "keep the files in this repository"
        return DirtySource(Problem(Code.HIDDEN_GIT_STATE, f"{self._where}: {path}", "a file", got, do))

    def _bad(self, object_id: str, expected: str, got: str) -> DirtySource:
        do = "name the full id of a commit that this repository holds"
        return DirtySource(Problem(Code.BAD_COMMIT, f"{self._where}: {object_id[:64]}", expected, got, do))

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:  # pragma: no cover - both pipes are opened above
            message = "the process has no pipe"
            raise RuntimeError(message)
        return pipe


def object_digest(kind: str, data: bytes, like: str) -> str:
    """The id that git gives an object, in the hash that another id was made with."""
    name = "sha1" if len(like) == _SHA1_DIGITS else "sha256"
    return hashlib.new(name, f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _is_safe_name(name: str) -> bool:
    """Whether a name can stand in a manifest line and leads nowhere else."""
    if name in ("", ".", "..") or name.lower() == ".git" or "/" in name or "\\" in name:
        return False
    return name.isprintable() and "\N{REPLACEMENT CHARACTER}" not in name
