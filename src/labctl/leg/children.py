"""Running a leg on cards: the processes that it starts, each with a file for what it prints, until none is left."""

import os
import resource
import signal
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.digest import sha256_file
from labctl.durable import FILE_MODE, open_once, sync_folder
from labctl.errors import Problem, WorkerFailed
from labctl.host.parentage import die_with_parent, heed_every_signal
from labctl.host.process_facts import see_process
from labctl.host.processes import (
    ProcessIdentity,
    descendants,
    identity_of_unreaped,
    poll_until_empty,
    reap_adopted,
    send_signal,
)
from labctl.records.leg import ProcessSeen

OUTLIVED_S = 0.5
KILL_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class ChildCommand:
    """How a child is started; nothing else of ours reaches it."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    working: Path
    log: Path
    """The file that it prints into."""
    memory_limit_bytes: int | None
    """What its data may grow to."""


@dataclass(slots=True)
class Child:
    """One started process."""

    command: ChildCommand
    identity: ProcessIdentity
    started_mono_ns: int
    seen: ProcessSeen | None
    _process: "subprocess.Popen[bytes]"
    ended_mono_ns: int | None = None

    def exit_status(self, clock: Clock) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        status = self._process.poll()
        if status is not None and self.ended_mono_ns is None:
            self.ended_mono_ns = clock.monotonic_ns()
        return status

    def log_bytes(self) -> int:
        """What it has printed so far."""
        return self.command.log.stat().st_size

    def closed_log(self, limit_bytes: int) -> tuple[int, str]:
        """Size and digest of what it printed, cut at a limit and on disk; call it when nothing of it is left."""
        with self.command.log.open("r+b") as file:
            if os.fstat(file.fileno()).st_size > limit_bytes:
                file.truncate(limit_bytes)
            os.fsync(file.fileno())
        sync_folder(self.command.log.parent)
        digest, size = sha256_file(self.command.log)
        return size, digest


@dataclass(slots=True)
class Children:
    """Everything below this process that was not there before.

    That holds for processes in sessions of their own and for orphans too, because the leg is a subreaper. No thread
    runs here, so that a child can be prepared between fork and exec.
    """

    clock: Clock
    started: list[Child] = field(default_factory=list)
    _strangers: frozenset[ProcessIdentity] = field(default_factory=lambda: frozenset(descendants(os.getpid())))

    def start(self, command: ChildCommand) -> Child:
        """Start one.

        Raises:
            WorkerFailed: the program does not start (WORKER_FAILED).
        """
        log = open_once(command.log)
        started_mono_ns = self.clock.monotonic_ns()
        try:
            os.fchmod(log, FILE_MODE)
            process = _spawn(command, log)
        except OSError as error:
            do = "look at the host profile's interpreter"
            got = os.strerror(error.errno or 0)
            raise WorkerFailed(
                Problem(Code.WORKER_FAILED, command.argv[0], "a program that starts", got, do)
            ) from error
        finally:
            os.close(log)
        identity = identity_of_unreaped(process.pid)
        seen = see_process(identity, command.environment.keys())
        child = Child(command, identity, started_mono_ns, seen, process)
        self.started.append(child)
        return child

    def family(self) -> tuple[ProcessIdentity, ...]:
        """Every running process of ours, by pid."""
        return tuple(process for process in descendants(os.getpid()) if process not in self._strangers)

    def running(self) -> tuple[Child, ...]:
        """The children that have not ended."""
        return tuple(child for child in self.started if child.exit_status(self.clock) is None)

    def outlived(self) -> tuple[int, ...]:
        """Processes that run beside or after those that were started, and do not end at once by themselves."""
        started = {child.identity for child in self.started}

        def strays() -> tuple[ProcessIdentity, ...]:
            self._reap()
            return tuple(process for process in self.family() if process not in started)

        return tuple(process.pid for process in poll_until_empty(strays, OUTLIVED_S, self.clock))

    def end(self, timeout_s: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ask all to end, kill what stays, and give what had to be killed and what even so is left."""
        asked: set[ProcessIdentity] = set()

        def ask() -> tuple[ProcessIdentity, ...]:
            for process in set(self.family()) - asked:
                send_signal(process, signal.SIGTERM)
                send_signal(process, signal.SIGCONT)  # one that has paused would never hear the other
                asked.add(process)
            self._reap()
            return self.family()

        late = poll_until_empty(ask, timeout_s, self.clock)
        killed: set[int] = set()

        def kill() -> tuple[ProcessIdentity, ...]:
            killed.update(process.pid for process in self.family() if send_signal(process, signal.SIGKILL))
            self._reap()
            return self.family()

        left = poll_until_empty(kill, KILL_WAIT_S, self.clock) if late else ()
        self._reap()
        return tuple(sorted(killed)), tuple(process.pid for process in left)

    def _reap(self) -> None:
        self.running()
        reap_adopted(self._ours())

    def _ours(self) -> Collection[int]:
        return {child.identity.pid for child in self.started} | {stranger.pid for stranger in self._strangers}


def _spawn(command: ChildCommand, log: int) -> "subprocess.Popen[bytes]":
    parent_pid = os.getpid()

    def prepare() -> None:
        die_with_parent(parent_pid, signal.SIGKILL)
        heed_every_signal()
        if command.memory_limit_bytes is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (command.memory_limit_bytes, command.memory_limit_bytes))

    return subprocess.Popen(
        command.argv,
        env=command.environment,
        cwd=command.working,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=prepare,  # noqa: PLW1509 (no other thread runs, and only the child itself can ask for this)
    )
