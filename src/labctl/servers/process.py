"""Running a leg: the server process with all that it starts, from its first instruction to the last trace of it."""

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import Problem, ServerNotReady
from labctl.frozen import FrozenModel
from labctl.host.parentage import die_with_parent, heed_every_signal
from labctl.host.processes import (
    ProcessIdentity,
    descendants,
    identity_of_unreaped,
    is_running,
    poll_until_empty,
    reap_adopted,
    send_signal,
)
from labctl.servers.log import ServerLog

KILL_WAIT_S = 10.0


class ServerCommand(FrozenModel):
    """How a server is started; nothing else of ours reaches it."""

    argv: tuple[str, ...]
    """Its argument list; no shell is involved."""
    environment: dict[str, str]
    """Its whole environment."""
    working: str
    """Its working folder."""


class Stopped(FrozenModel):
    """How a stop went."""

    stop_signal_mono_ns: int
    """When SIGTERM was sent."""
    ended_mono_ns: int
    """When nothing was left, or the waiting was over."""
    exit_status: int | None
    """The root's exit status; negative: the signal that ended it."""
    killed: tuple[int, ...]
    """Processes that had to be killed."""
    left: tuple[int, ...]
    """Processes that even so are left."""


@dataclass(slots=True)
class ServerProcess:
    """A started server.

    Its family is everything below this process that was not there before the start. That holds for processes in new
    sessions and for orphans too, because the leg is a subreaper; and it holds before the root is known.
    """

    log: ServerLog
    started_mono_ns: int
    _child: subprocess.Popen[bytes]
    root: ProcessIdentity
    _strangers: frozenset[ProcessIdentity] = field(default_factory=frozenset)

    @classmethod
    def start(cls, command: ServerCommand, log: ServerLog, clock: Clock) -> Self:
        """Start the server; call it from the main thread, before other threads run.

        Raises:
            ServerNotReady: the program does not start (SERVER_EXITED).
        """
        strangers = frozenset(descendants(os.getpid()))
        started_mono_ns = clock.monotonic_ns()
        try:
            child = _spawn(command, log.write_end)
        except OSError as error:
            do = "look at the campaign's command and at the host profile's interpreter"
            got = os.strerror(error.errno or 0)
            raise ServerNotReady(
                Problem(Code.SERVER_EXITED, command.argv[0], "a program that starts", got, do)
            ) from error
        root = identity_of_unreaped(child.pid)
        log.start()
        return cls(log, started_mono_ns, child, root, strangers)

    def exit_status(self) -> int | None:
        """The root's exit status, negative for a signal; None while it runs."""
        return self._child.poll()

    def family(self) -> tuple[ProcessIdentity, ...]:
        """Every running process of this start, by pid."""
        return tuple(process for process in descendants(os.getpid()) if process not in self._strangers)

    def stop(self, timeout_s: float, clock: Clock) -> Stopped:
        """Ask the root to end, then what is left of its family, and kill what stays."""
        stop_signal_mono_ns = clock.monotonic_ns()
        send_signal(self.root, signal.SIGTERM)
        asked: set[ProcessIdentity] = {self.root}

        def look() -> tuple[ProcessIdentity, ...]:
            self._reap()
            family = self.family()
            # While the root runs it ends its children in its own order; what outlives it is asked once.
            if not is_running(self.root):
                for process in set(family) - asked:
                    send_signal(process, signal.SIGTERM)
                asked.update(family)
            return family

        late = poll_until_empty(look, timeout_s, clock)
        killed, left = self._kill(late, clock)
        return Stopped(
            stop_signal_mono_ns=stop_signal_mono_ns,
            ended_mono_ns=clock.monotonic_ns(),
            exit_status=self.exit_status(),
            killed=killed,
            left=left,
        )

    def _kill(self, late: tuple[ProcessIdentity, ...], clock: Clock) -> tuple[tuple[int, ...], tuple[int, ...]]:
        killed: set[int] = set()
        if not late:
            return (), ()

        def look() -> tuple[ProcessIdentity, ...]:
            for process in self.family():
                if send_signal(process, signal.SIGKILL):
                    killed.add(process.pid)
            self._reap()
            return self.family()

        left = poll_until_empty(look, KILL_WAIT_S, clock)
        return tuple(sorted(killed)), tuple(process.pid for process in left)

    def _reap(self) -> None:
        self._child.poll()
        reap_adopted({self._child.pid, *(stranger.pid for stranger in self._strangers)})


def _spawn(command: ServerCommand, output: int) -> "subprocess.Popen[bytes]":
    parent_pid = os.getpid()

    def prepare() -> None:
        die_with_parent(parent_pid, signal.SIGKILL)
        heed_every_signal()

    return subprocess.Popen(
        command.argv,
        env=command.environment,
        cwd=Path(command.working),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=prepare,  # noqa: PLW1509 (no other thread runs yet, and only the child itself can ask for this)
    )
