"""What a leg leaves when both of its processes are killed in one moment: the controller inherits it and ends it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from labctl.clock import Clock
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


def _kill_all_but(strangers: frozenset[ProcessIdentity]) -> tuple[ProcessIdentity, ...]:
    ours = tuple(process for process in descendants(os.getpid()) if process not in strangers)
    for process in ours:
        send_signal(process, signal.SIGKILL)
    reap_adopted({stranger.pid for stranger in strangers})  # with none running, this reaps the last that were killed
    return ours
