import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.host.processes import (
    ProcessIdentity,
    descendants,
    identity_of,
    identity_of_unreaped,
    is_running,
    own_identity,
    parent_of,
    poll_until_empty,
    reap_adopted,
    send_signal,
)

CHILD_WITH_CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
FIRST_THREAD_ENDS = (
    "import ctypes, threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,)).start()\n"
    "ctypes.CDLL(None).syscall(60, 0)\n"  # exit, which ends this thread alone; x86-64's number
)
NEVER_A_PID = 2**22 + 1


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_process_is_told_by_id_and_start(sleeper: "subprocess.Popen[bytes]") -> None:
    process = identity_of(sleeper.pid)
    assert process == identity_of_unreaped(sleeper.pid)
    assert process is not None
    assert is_running(process)
    assert parent_of(sleeper.pid) == os.getpid() == own_identity().pid
    assert process.start_ticks >= own_identity().start_ticks


def test_a_stranger_with_the_same_id_is_never_signalled(sleeper: "subprocess.Popen[bytes]") -> None:
    process = identity_of_unreaped(sleeper.pid)
    earlier = ProcessIdentity(process.pid, process.start_ticks - 1)
    assert not is_running(earlier)
    assert send_signal(earlier, signal.SIGKILL) is False
    assert is_running(process)
    assert send_signal(process, signal.SIGKILL) is True
    assert sleeper.wait(5) == -signal.SIGKILL


def test_a_process_that_has_ended_is_not_running_even_before_it_is_reaped(sleeper: "subprocess.Popen[bytes]") -> None:
    process = identity_of_unreaped(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert identity_of(sleeper.pid) is None
    assert identity_of_unreaped(sleeper.pid) == process
    assert process not in descendants(os.getpid())
    assert send_signal(process, signal.SIGTERM) is False
    reap_adopted({sleeper.pid})
    assert identity_of_unreaped(sleeper.pid) == process


def test_a_process_whose_first_thread_has_ended_runs_as_long_as_another_does() -> None:
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rsplit(") ", 1)[1].split()[0] != "Z":
            time.sleep(0.01)
        identity = identity_of_unreaped(process.pid)
        assert process.poll() is None
        assert is_running(identity)
        assert identity in descendants(os.getpid())
        assert send_signal(identity, signal.SIGKILL) is True
        assert process.wait(5) == -signal.SIGKILL
        assert not is_running(identity)


def test_nobody_is_nobody() -> None:
    assert identity_of(NEVER_A_PID) is None
    assert parent_of(NEVER_A_PID) is None
    assert send_signal(ProcessIdentity(NEVER_A_PID, 1), signal.SIGTERM) is False
    with pytest.raises(RuntimeError, match="not an unreaped child"):
        identity_of_unreaped(NEVER_A_PID)


def test_descendants_are_found_at_any_depth() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD_WITH_CHILD], stdin=subprocess.PIPE) as child:
        deadline_s = time.monotonic() + 10
        while len(descendants(child.pid)) < 1:
            assert time.monotonic() < deadline_s
        (grandchild,) = descendants(child.pid)
        assert parent_of(grandchild.pid) == child.pid
        assert {child.pid, grandchild.pid} <= {process.pid for process in descendants(os.getpid())}
        child.communicate(b"\n")
    assert not is_running(grandchild)


def test_a_name_with_a_parenthesis_does_not_confuse_the_reader(tmp_path: "os.PathLike[str]") -> None:
    odd = os.path.join(tmp_path, "a) Z 1 (b")  # noqa: PTH118 (a link whose name goes into /proc/PID/stat)
    os.symlink("/bin/sleep", odd)  # noqa: PTH211 (see above)
    with subprocess.Popen([odd, "60"]) as process:
        try:
            while os.readlink(f"/proc/{process.pid}/exe") == os.readlink("/proc/self/exe"):  # noqa: PTH115 (as above)
                time.sleep(0.01)
            assert parent_of(process.pid) == os.getpid()
            assert identity_of(process.pid) is not None
        finally:
            process.kill()


def test_polling_ends_when_nothing_is_found_or_the_time_is_over() -> None:
    someone = ProcessIdentity(1, 1)
    answers = iter([(someone,), (someone,), ()])
    assert poll_until_empty(lambda: next(answers), 5, SystemClock()) == ()
    assert poll_until_empty(lambda: (someone,), 0.05, SystemClock()) == (someone,)
