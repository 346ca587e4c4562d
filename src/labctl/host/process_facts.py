"""Running a leg: what a process was started with, what it has mapped, and what it shares."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from labctl.host.processes import PROC, ProcessIdentity, identity_of, parent_of
from labctl.records.leg import ProcessSeen

SHARED_MEMORY = "/dev/shm/"  # noqa: S108 (the place that the kernel's shared memory really has)
DELETED = " (deleted)"
MAPS_COLUMNS = 6


class SharedSegment(NamedTuple):
    """A shared-memory segment; the inode tells it from a later one of the same name."""

    path: str
    inode: int


class Mapping(NamedTuple):
    """A file that a process has mapped."""

    path: str
    device: str
    inode: int
    is_executable: bool


def see_process(process: ProcessIdentity, allowed: Collection[str]) -> ProcessSeen | None:
    """What /proc shows of a process, or None when it has ended.

    Args:
        process: which process.
        allowed: names of environment variables whose values may be written down; of others only the name is.
    """
    place = PROC / str(process.pid)
    try:
        executable = _text(os.fsencode((place / "exe").readlink()))
        argv = _zero_separated((place / "cmdline").read_bytes())
        environment = _zero_separated((place / "environ").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return None
    parent_pid = parent_of(process.pid)
    if parent_pid is None or identity_of(process.pid) != process:
        return None
    pairs = [text.partition("=") for text in environment if text]  # a process that renames itself leaves empty ones
    return ProcessSeen(
        pid=process.pid,
        parent_pid=parent_pid,
        start_ticks=process.start_ticks,
        executable=executable,
        argv=argv,
        environment={name: value for name, _, value in pairs if name in allowed},
        environment_other=tuple(sorted({name for name, _, _ in pairs if name not in allowed})),
    )


def mapped_files(process: ProcessIdentity) -> frozenset[Mapping]:
    """The files that a process has mapped; empty when it has ended."""
    try:
        lines = (PROC / str(process.pid) / "maps").read_bytes().split(b"\n")
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
    return frozenset(mapping for line in lines if (mapping := _mapping(line)) is not None)


def open_files(process: ProcessIdentity) -> frozenset[str]:
    """What the descriptors of a process point to, as /proc says; empty when it has ended."""
    try:
        entries = list((PROC / str(process.pid) / "fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
    return frozenset(_link(entry) for entry in entries) - {""}


def executable_lines(mappings: Iterable[Mapping]) -> bytes:
    """The text of `maps.txt`: each executable file once as `path<TAB>device inode`, sorted by bytes."""
    lines = {f"{found.path}\t{found.device} {found.inode}\n".encode() for found in mappings if found.is_executable}
    return b"".join(sorted(lines))


def shared_segments(processes: Iterable[ProcessIdentity]) -> frozenset[SharedSegment]:
    """Named shared-memory segments that these processes have mapped or open."""
    found: set[SharedSegment] = set()
    for process in processes:
        mapped = {mapping.path for mapping in mapped_files(process)}
        for path in mapped | open_files(process):
            if path.startswith(SHARED_MEMORY) and (segment := _segment(path)) is not None:
                found.add(segment)
    return frozenset(found)


def still_there(segments: Iterable[SharedSegment]) -> tuple[str, ...]:
    """Which of these segments still exist, by path."""
    return tuple(sorted(segment.path for segment in segments if _segment(segment.path) == segment))


def resident_bytes(processes: Iterable[ProcessIdentity]) -> int:
    """Resident memory of some processes, summed; shared pages count in each."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return sum(_resident_pages(process) for process in processes) * page_bytes


def _resident_pages(process: ProcessIdentity) -> int:
    try:
        return int((PROC / str(process.pid) / "statm").read_bytes().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _mapping(line: bytes) -> Mapping | None:
    columns = line.split(maxsplit=MAPS_COLUMNS - 1)
    if len(columns) < MAPS_COLUMNS or not columns[5].startswith(b"/"):
        return None
    _, permissions, _, device, inode, path = columns
    return Mapping(_text(path), device.decode("ascii"), int(inode), b"x" in permissions)


def _link(entry: Path) -> str:
    try:
        return _text(os.fsencode(entry.readlink()))
    except (FileNotFoundError, ProcessLookupError):  # closed while we looked
        return ""


def _segment(path: str) -> SharedSegment | None:
    if path.endswith(DELETED):
        return None
    try:
        return SharedSegment(path, Path(path).lstat().st_ino)
    except OSError:
        return None


def _zero_separated(data: bytes) -> tuple[str, ...]:
    return tuple(_text(part) for part in data.removesuffix(b"\0").split(b"\0")) if data else ()


def _text(data: bytes) -> str:
    # Bytes that are not UTF-8 stay visible, and stay writable as JSON.
    return data.decode("utf-8", "backslashreplace")
