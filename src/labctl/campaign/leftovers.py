"""What a leg leaves when both of its processes are killed in one moment: the controller inherits it and ends it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from labctl.clock import Clock
from labctl.host.control_group import groups_of_the_dead, own_group
from labctl.host.parentage import become_subreaper
from labctl.host.processes import ProcessIdentity, descendants, poll_until_empty, reap_adopted, send_signal

KILL_WAIT_S = 10.0


@contextmanager
def nothing_outlives(clock: Clock) -> Iterator[None]:
    """Whatever was started within the block, and whatever that left, is ended with it."""
    strangers = frozenset(descendants(os.getpid()))
    become_subreaper()
    try:
        yield
    finally:
        poll_until_empty(lambda: _kill_all_but(strangers), KILL_WAIT_S, clock)
        if (group := own_group()) is not None:
            group.end(clock)


def hold(pid: int) -> None:
    """Put a process, and all that it will start, into this process's control group, where the host has such."""
    if (group := own_group()) is not None:
        group.take(pid)


def end_what_the_dead_left(clock: Clock) -> int:
    """End whatever runs in the groups of processes that are dead: a whole campaign was killed; how many there were."""
    return sum(group.end(clock) for group in groups_of_the_dead())


def _kill_all_but(strangers: frozenset[ProcessIdentity]) -> tuple[ProcessIdentity, ...]:
    ours = tuple(process for process in descendants(os.getpid()) if process not in strangers)
    for process in ours:
        send_signal(process, signal.SIGKILL)
    reap_adopted({stranger.pid for stranger in strangers})  # with none running, this reaps the last that were killed
    return ours
