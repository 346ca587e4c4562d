"""Each case runs in processes of its own, because what it asks of the kernel stays with a process."""

import subprocess
import sys

ORPHAN = """
import os, signal
from labctl.host.parentage import become_subreaper
from labctl.host.processes import descendants, kill_descendants, parent_of
from labctl.clock import SystemClock
become_subreaper()
told, tell = os.pipe()
child = os.fork()
if child == 0:
    os.setsid()
    orphan = os.fork()
    if orphan == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(tell, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
os.waitpid(child, 0)
orphan = int(os.read(told, 100))
print(parent_of(orphan) == os.getpid(), [process.pid for process in descendants(os.getpid())] == [orphan])
print(kill_descendants(5, SystemClock()), descendants(os.getpid()))
"""

DEATH = """
import os, signal, sys, time
from labctl.host.parentage import become_subreaper, die_with_parent
become_subreaper()
told, tell = os.pipe()
middle = os.fork()
if middle == 0:
    parent = os.getpid()
    if os.fork() == 0:
        die_with_parent(parent, signal.SIGKILL)
        os.write(tell, b"ready")
        time.sleep(60)
    time.sleep(60)
os.read(told, 5)
os.kill(middle, signal.SIGKILL)
print(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)))
"""

TOO_LATE = """
import os, signal
from labctl.host.parentage import die_with_parent
child = os.fork()
if child == 0:
    die_with_parent(1 << 22, signal.SIGKILL)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def said(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    ).stdout


def test_an_orphan_in_a_session_of_its_own_comes_to_the_subreaper_and_is_ended() -> None:
    assert said(ORPHAN) == "True True\n() ()\n"


def test_a_child_dies_with_its_parent() -> None:
    assert said(DEATH) == "[-9, -9]\n"


def test_a_child_whose_parent_has_gone_already_ends_at_once() -> None:
    assert said(TOO_LATE) == "137\n"
