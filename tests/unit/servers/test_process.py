import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import ServerNotReady
from labctl.host.processes import identity_of, is_running
from labctl.servers.log import ServerLog
from labctl.servers.process import ServerCommand, ServerProcess

CLOCK = SystemClock()
SHOW = "import os; print(sorted(os.environ), os.getcwd(), os.getsid(0) == os.getpid(), repr(os.read(0, 1)))"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
SIGNALS = "import signal; print([n.name for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN])"


@contextmanager
def started(place: Path, *argv: str, **environment: str) -> Iterator[ServerProcess]:
    log = ServerLog(place / "server.log", 1 << 20, lambda: None)
    command = ServerCommand(argv=argv, environment=environment, working=str(place))
    server = ServerProcess.start(command, log, CLOCK)
    try:
        yield server
    finally:
        server.stop(0.1, CLOCK)
        log.close()


def await_text(server: ServerProcess, text: str) -> None:
    deadline_s = time.monotonic() + 10
    while text not in server.log.tail:
        assert time.monotonic() < deadline_s, server.log.tail
        time.sleep(0.01)


def test_the_server_gets_its_environment_folder_and_session_and_no_input(tmp_path: Path) -> None:
    with started(tmp_path, sys.executable, "-I", "-c", SHOW, ONLY="this", LC_ALL="C.UTF-8") as server:
        await_text(server, "\n")
    assert server.log.last_line == f"['LC_ALL', 'ONLY'] {tmp_path} True b''"


def test_a_program_that_does_not_exist_is_no_server(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log", 10, lambda: None)
    command = ServerCommand(argv=("/no/such/program",), environment={}, working=str(tmp_path))
    with pytest.raises(ServerNotReady) as caught:
        ServerProcess.start(command, log, CLOCK)
    log.close()
    assert caught.value.codes == (Code.SERVER_EXITED,)
    assert "No such file" in str(caught.value)


def test_a_stop_asks_first(tmp_path: Path) -> None:
    with started(tmp_path, "/bin/sleep", "60") as server:
        assert server.exit_status() is None
        stopped = server.stop(5, CLOCK)
    assert (stopped.exit_status, stopped.killed, stopped.left) == (-signal.SIGTERM, (), ())
    assert not is_running(server.root)
    assert 0 <= stopped.ended_mono_ns - stopped.stop_signal_mono_ns < 4_000_000_000


def test_what_does_not_hear_is_killed_after_the_time_and_named(tmp_path: Path) -> None:
    with started(tmp_path, sys.executable, "-c", DEAF) as server:
        await_text(server, "deaf")
        stopped = server.stop(0.3, CLOCK)
    assert (stopped.exit_status, stopped.killed, stopped.left) == (-signal.SIGKILL, (server.root.pid,), ())
    assert stopped.ended_mono_ns - stopped.stop_signal_mono_ns >= 300_000_000


def test_a_server_that_has_ended_is_stopped_at_once(tmp_path: Path) -> None:
    with started(tmp_path, "/bin/sh", "-c", "exit 3") as server:
        while server.exit_status() is None:
            time.sleep(0.01)
        stopped = server.stop(5, CLOCK)
    assert (stopped.exit_status, stopped.killed) == (3, ())


def test_children_that_were_there_before_are_strangers(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as stranger:
        try:
            with started(tmp_path, "/bin/sleep", "60") as server:
                assert server.family() == (server.root,)
                server.stop(0.1, CLOCK)
            assert identity_of(stranger.pid) is not None
        finally:
            stranger.kill()
    assert stranger.returncode == -signal.SIGKILL


def test_no_descriptor_of_ours_is_left_in_the_server(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        with started(tmp_path, "/bin/sleep", "60") as server:
            # While a program is being loaded it opens its libraries; those go, an inherited one would stay.
            deadline_s = time.monotonic() + 5
            while descriptors_of(server.root.pid) != [0, 1, 2]:
                assert time.monotonic() < deadline_s, descriptors_of(server.root.pid)
                time.sleep(0.01)
    finally:
        os.close(descriptor)


def descriptors_of(pid: int) -> list[int]:
    return sorted(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir())


def test_no_signal_is_ignored_from_the_start_even_under_nohup(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with started(tmp_path, sys.executable, "-I", "-c", SIGNALS) as server:
            await_text(server, "\n")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert server.log.last_line == "['SIGPIPE', 'SIGXFSZ']"  # what Python itself ignores
