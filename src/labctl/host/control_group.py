"""A second net under a leg: one control group that holds all of it, where the host lets this user make one.

The first net (`leg/guard.py`) finds what a leg left by its parentage, which needs one process above it to live. A group
outlives all of them: its members can be killed at once, by whoever comes next.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Clock
from labctl.host.processes import ProcessIdentity, is_running, own_identity

PREFIX = "labctl-"
KILL_WAIT_NS = 10_000_000_000
POLL_S = 0.01
_PROC = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group of the second version of control groups; its name says which process made it."""

    path: Path

    @property
    def owner(self) -> ProcessIdentity:
        """The process that made it."""
        _, pid, ticks = self.path.name.removeprefix(PREFIX).split("-")
        return ProcessIdentity(int(pid), int(ticks))

    def take(self, pid: int) -> bool:
        """Move a process into it; what the process starts from then on is in it too. False where the kernel refuses."""
        try:
            self.path.mkdir(exist_ok=True)
            (self.path / "cgroup.procs").write_text(str(pid))
        except OSError:
            with contextlib.suppress(OSError):
                self.path.rmdir()
            return False
        return True

    def end(self, clock: Clock) -> int:
        """Kill every member, wait until none is left, and remove it; how many there were."""
        try:
            members = len((self.path / "cgroup.procs").read_text().split())
            (self.path / "cgroup.kill").write_text("1")
        except OSError:
            return 0  # no such group, or a kernel before 5.14
        deadline_ns = clock.monotonic_ns() + KILL_WAIT_NS
        while not self._is_removed() and clock.monotonic_ns() < deadline_ns:
            clock.sleep(POLL_S)
        return members

    def _is_removed(self) -> bool:
        try:
            self.path.rmdir()
        except OSError:
            return not self.path.exists()
        return True


def own_group() -> ControlGroup | None:
    """The group that this process may fill, not yet made; None where there are no groups of the second version."""
    place, me = _own_place(), own_identity()
    return None if place is None else ControlGroup(place / f"{_prefix()}{me.pid}-{me.start_ticks}")


def groups_of_the_dead() -> tuple[ControlGroup, ...]:
    """Groups beside this process's own that were made by processes which no longer run."""
    place = _own_place()
    found = [] if place is None else [ControlGroup(path) for path in sorted(place.glob(f"{_prefix()}[0-9]*-[0-9]*"))]
    return tuple(group for group in found if not is_running(group.owner))


def _prefix() -> str:
    """Names are of one namespace of process ids: what runs in another cannot be told from what is dead."""
    return f"{PREFIX}{(_PROC / 'ns/pid').stat().st_ino}-"


def _own_place() -> Path | None:
    mounts = [line.split() for line in (_PROC / "mountinfo").read_text().splitlines()]
    tops = [words[4] for words in mounts if words[words.index("-") + 1] == "cgroup2"]
    own = [line[3:] for line in (_PROC / "cgroup").read_text().splitlines() if line.startswith("0::")]
    return Path(f"{tops[0]}{own[0]}") if tops and own else None
