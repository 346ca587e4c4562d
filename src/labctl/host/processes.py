"""Running a leg: processes as /proc shows them, their trees, and signals that cannot reach a stranger."""

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Clock

PROC = Path("/proc")
POLL_S = 0.01


@dataclass(frozen=True, slots=True, order=True)
class ProcessIdentity:
    """A process that cannot be mistaken for a later one with the same id."""

    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class _Stat:
    identity: ProcessIdentity
    parent_pid: int
    is_zombie: bool


def identity_of(pid: int) -> ProcessIdentity | None:
    """The identity of a process, or None when it has ended."""
    stat = _stat(pid)
    return None if stat is None or stat.is_zombie else stat.identity


def own_identity() -> ProcessIdentity:
    """The identity of this process."""
    return identity_of_unreaped(os.getpid())


def identity_of_unreaped(pid: int) -> ProcessIdentity:
    """The identity of this process or of a child that it has not reaped, running or not.

    Raises:
        RuntimeError: there is no such process.
    """
    stat = _stat(pid)
    if stat is None:
        message = f"process {pid} is not an unreaped child"
        raise RuntimeError(message)
    return stat.identity


def parent_of(pid: int) -> int | None:
    """The parent of a process, or None when it has ended."""
    stat = _stat(pid)
    return None if stat is None else stat.parent_pid


def is_running(process: ProcessIdentity) -> bool:
    """Whether this very process still runs; one that only waits to be reaped does not."""
    return identity_of(process.pid) == process


def descendants(pid: int) -> tuple[ProcessIdentity, ...]:
    """Every running process below a process, by pid; those that wait to be reaped are left out."""
    children: dict[int, list[_Stat]] = {}
    for stat in _stats():
        children.setdefault(stat.parent_pid, []).append(stat)
    found: list[ProcessIdentity] = []
    waiting = [pid]
    while waiting:
        for stat in children.get(waiting.pop(), ()):
            waiting.append(stat.identity.pid)
            if not stat.is_zombie:
                found.append(stat.identity)
    return tuple(sorted(found))


def send_signal(process: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal exactly this process; False when it has ended, even where its id is in use again."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        # The descriptor pins whoever has the id now; only then is the start time proof of who that is.
        if not is_running(process):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def reap_adopted(except_pids: Collection[int]) -> None:
    """Reap ended children of this process, apart from those that somebody else waits for."""
    own = os.getpid()
    for stat in _stats():
        if stat.is_zombie and stat.parent_pid == own and stat.identity.pid not in except_pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stat.identity.pid, os.WNOHANG)


def kill_descendants(timeout_s: float, clock: Clock) -> tuple[ProcessIdentity, ...]:
    """Kill and reap everything below this process; what is left after the time is returned."""
    own = os.getpid()

    def kill_all() -> tuple[ProcessIdentity, ...]:
        for process in descendants(own):
            send_signal(process, signal.SIGKILL)
        reap_adopted(())
        return descendants(own)

    return poll_until_empty(kill_all, timeout_s, clock)


def poll_until_empty(
    look: Callable[[], tuple[ProcessIdentity, ...]], timeout_s: float, clock: Clock
) -> tuple[ProcessIdentity, ...]:
    """Look again and again until nothing is found or the time is over; what was found last is returned."""
    deadline_ns = clock.monotonic_ns() + round(timeout_s * 1e9)
    while (found := look()) and clock.monotonic_ns() < deadline_ns:
        clock.sleep(POLL_S)
    return found


def _stats() -> Iterator[_Stat]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            stat = _stat(int(entry.name))
            if stat is not None:
                yield stat


def _stat(pid: int) -> _Stat | None:
    try:
        data = (PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold anything, parentheses included.
    fields = data[data.rindex(b")") + 2 :].split()
    # A process whose first thread is over shows as a zombie while its other threads run on, or are still ending.
    is_zombie = fields[0] in {b"Z", b"X"} and int(fields[17]) <= 1
    return _Stat(ProcessIdentity(pid, int(fields[19])), int(fields[1]), is_zombie)
