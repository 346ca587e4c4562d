"""Running a leg: whether a process runs or has paused, its whole address space, and the CPUs that it may use."""

import os

from labctl.host.processes import PROC, ProcessIdentity, identity_of

STOPPED = "T"


def is_paused(process: ProcessIdentity) -> bool:
    """Whether a process has been stopped by a signal and waits to be continued."""
    try:
        data = (PROC / str(process.pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # the program's name stands in parentheses and may hold anything
    state = data[data.rindex(b")") + 2 :].split()[0].decode("ascii")
    return state == STOPPED and identity_of(process.pid) == process


def address_space(process: ProcessIdentity) -> bytes:
    """The text of /proc/PID/maps; empty when the process has ended."""
    try:
        return (PROC / str(process.pid) / "maps").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def cpus_of(process: ProcessIdentity) -> tuple[int, ...]:
    """The CPUs on which a process may run; none when it has ended."""
    try:
        return tuple(sorted(os.sched_getaffinity(process.pid)))
    except ProcessLookupError:
        return ()
