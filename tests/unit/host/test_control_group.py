"""The second net: a control group that holds a leg, here a real one, where the host lets this user make it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.campaign.leftovers import end_what_the_dead_left, hold, nothing_outlives
from labctl.clock import SystemClock
from labctl.host import control_group
from labctl.host.control_group import ControlGroup, groups_of_the_dead, own_group
from labctl.host.processes import own_identity

LEG = (
    "import subprocess, sys, time\n"
    "sys.stdin.readline()\n"
    "child = subprocess.Popen(['sleep', '60'], start_new_session=True, stdin=subprocess.DEVNULL)\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(60)\n"
)
CONTROLLER = """
import subprocess, sys, time
from labctl.campaign.leftovers import hold
leg = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, start_new_session=True)
hold(leg.pid)
leg.stdin.write(b"\\n")
leg.stdin.flush()
time.sleep(60)
"""


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    found = own_group()
    with subprocess.Popen(["sleep", "60"]) as probe:
        is_allowed = found is not None and found.take(probe.pid)
        probe.kill()
    if found is None or not is_allowed:
        pytest.skip("this host has no control group of the second version that this user may fill")
    yield found
    found.end(SystemClock())


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[0]
    except OSError:
        return False


def test_whatever_a_leg_started_ends_with_the_group(group: ControlGroup) -> None:
    with subprocess.Popen([sys.executable, "-c", LEG], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as leg:
        assert leg.stdin is not None
        assert leg.stdout is not None
        assert group.take(leg.pid)
        leg.stdin.write(b"\n")
        leg.stdin.flush()
        orphan = int(leg.stdout.readline())
        assert is_alive(orphan)
        assert group.end(SystemClock()) == 2
    assert not is_alive(orphan)
    assert not group.path.exists()


def test_a_leg_that_is_held_leaves_no_group_behind(group: ControlGroup) -> None:
    with nothing_outlives(SystemClock()):
        leg = subprocess.Popen(["sleep", "60"])
        hold(leg.pid)
        assert group.path.is_dir()
        leg.kill()
        leg.wait()
    assert not group.path.exists()


def test_what_a_killed_campaign_left_is_ended_by_the_next(group: ControlGroup) -> None:
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER, LEG], stdout=subprocess.PIPE)
    assert controller.stdout is not None
    orphan = int(controller.stdout.readline())
    (leg,) = [int(word) for word in Path(f"/proc/{controller.pid}/task/{controller.pid}/children").read_text().split()]
    theirs = [path for path in group.path.parent.glob("labctl-*") if f"-{controller.pid}-" in path.name]
    assert theirs
    assert ControlGroup(theirs[0]) not in groups_of_the_dead()
    for pid in (leg, controller.pid):
        os.kill(pid, signal.SIGKILL)
    controller.wait()
    controller.stdout.close()
    assert is_alive(orphan)
    assert ControlGroup(theirs[0]) in groups_of_the_dead()
    assert end_what_the_dead_left(SystemClock()) >= 1
    assert not is_alive(orphan)
    assert not theirs[0].exists()


def test_the_name_tells_the_owner_and_the_namespace(group: ControlGroup) -> None:
    assert group.owner == own_identity()
    assert str(Path("/proc/self/ns/pid").stat().st_ino) in group.path.name


@pytest.mark.parametrize("mountinfo", ["", "1 1 0:1 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n"])
def test_a_host_without_such_groups_has_none(mountinfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo)
    (tmp_path / "cgroup").write_text("4:memory:/\n")
    monkeypatch.setattr(control_group, "_PROC", tmp_path)
    assert own_group() is None
    assert groups_of_the_dead() == ()
    started = time.monotonic()
    hold(os.getpid())
    assert time.monotonic() - started < 1


def test_a_place_that_may_not_be_written_changes_nothing(tmp_path: Path) -> None:
    group = ControlGroup(tmp_path / "nowhere" / "labctl-1-2-3")
    assert not group.take(os.getpid())
    assert group.end(SystemClock()) == 0
