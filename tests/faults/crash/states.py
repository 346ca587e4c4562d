"""Every state that a loss of power may leave on a disk, given the system calls that a process made.

`record_operations(folder, command)` runs a command under strace and returns what it did below a folder: files and
folders made, bytes written, files and folders put on disk. `crash_states(operations, volatile)` gives each state that
POSIX allows after them: a name is sure only when its folder was synced after it was made, bytes only when their file
was; everything else may or may not be there, each by itself, bytes also in half. No file system's habits are assumed.

The calls of the real process are taken rather than a list that the code keeps of itself, so that a write which goes
past `durable` counts as well.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Literal

from tests.faults.crash.races import TOP

TRACED = (
    "openat,write,pwrite64,fsync,fdatasync,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir"
)
CALL = re.compile(r"^(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))$")
PATH = re.compile(r"<([^<>]*)>")
QUOTED = re.compile(r'"([^"]*)"')
UNFINISHED = "<unfinished ...>"
DONE = re.compile(r"\) += (\d+)")
FORBIDDEN = ("rename", "link", "unlink", "rmdir")


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that was done: `make`, `grow` (by so many bytes), `sync`, or `say` (on stdout)."""

    kind: Literal["make", "grow", "sync", "say"]
    path: Path
    size_bytes: int = 0


@dataclass
class Disk:
    """What is there after some operations, and how much of it is sure to stay."""

    names: dict[Path, bool] = field(default_factory=dict)
    """Each file or folder, and whether its name is on disk."""
    sizes: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Of each file: the bytes on disk, and the bytes written."""

    def apply(self, operation: Operation) -> None:
        """Do one thing."""
        path = operation.path
        match operation.kind:
            case "make":
                self.names.setdefault(path, False)
            case "grow":
                safe, written = self.sizes.get(path, (0, 0))
                self.sizes[path] = (safe, written + operation.size_bytes)
            case "sync":
                self.names |= {name: True for name in self.names if name.parent == path}
                if path in self.sizes:
                    self.sizes[path] = (self.sizes[path][1], self.sizes[path][1])
            case "say":
                pass

    def states(self) -> Iterator[dict[Path, int]]:
        """Each way in which it may be found after a crash: the files and folders, with the size of each."""
        unsure = [path for path, is_safe in self.names.items() if not is_safe]
        growing = [path for path, (safe, written) in self.sizes.items() if safe != written]
        choices = [sorted({safe, (safe + written) // 2, written}) for safe, written in map(self.sizes.get, growing)]  # type: ignore[misc] # they are there
        for kept in product((False, True), repeat=len(unsure)):
            lost = {path for path, is_kept in zip(unsure, kept, strict=True) if not is_kept}
            there = [path for path in self.names if lost.isdisjoint((path, *path.parents))]
            for sizes in product(*choices):
                found = {path: written for path, (_, written) in self.sizes.items()}
                found |= dict(zip(growing, sizes, strict=True))
                yield {path: found.get(path, 0) for path in there}


def record_operations(below: Path, log: Path, command: list[str]) -> list[Operation]:
    """What a command does below a folder, in order; an AssertionError where it fails or takes a name away."""
    traced = ["strace", "-f", "-y", "-s", "4096", "-o", str(log), "-e", f"trace={TRACED}", *command]
    done = subprocess.run(traced, capture_output=True, text=True, check=False, cwd=TOP)
    assert done.returncode == 0, done.stdout + done.stderr
    operations: list[Operation] = []
    pending: dict[str, tuple[str, str]] = {}
    for line in log.read_text().splitlines():
        found = CALL.match(line)
        if found is None:
            continue
        pid, call, rest, resumed, end = found.groups()
        if rest is not None and rest.endswith(UNFINISHED):
            pending[pid] = (call, rest.removesuffix(UNFINISHED))
            continue
        if resumed is not None:
            call, start = pending.pop(pid)
            rest = start + end
        if (operation := _operation(call, rest, below)) is not None:
            operations.append(operation)
    return operations


def _operation(call: str, rest: str, below: Path) -> Operation | None:
    done = DONE.search(rest)
    if done is None:
        return None
    if call == "write" and rest.startswith("1<"):
        return Operation("say", below)
    path = _made(call, rest) if call in ("openat", "mkdir", "mkdirat") else _held(rest)
    if path is None or below not in (path, *path.parents):
        return None
    assert not call.startswith(FORBIDDEN), rest
    if call in ("write", "pwrite64"):
        return Operation("grow", path, int(done[1]))
    return Operation("sync" if call in ("fsync", "fdatasync") else "make", path)


def _made(call: str, rest: str) -> Path | None:
    if call == "openat":
        return Path(PATH.findall(rest)[-1]) if "O_CREAT" in rest else None
    name = Path(QUOTED.findall(rest)[0])
    return name if call == "mkdir" else Path(PATH.findall(rest)[0]) / name


def _held(rest: str) -> Path | None:
    found = PATH.search(rest) or QUOTED.search(rest)
    return None if found is None else Path(found[1])
