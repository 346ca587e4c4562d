"""Run in a process of its own, because adopting orphans is for the whole of a process and for good."""

import json
import subprocess
import sys
from pathlib import Path

from labctl.host.processes import PROC

CONTROLLER = """
import json, os, subprocess, sys, time
from labctl.campaign.leftovers import nothing_outlives
from labctl.clock import SystemClock

mine = subprocess.Popen(["sleep", "60"])
leg = "import os, subprocess, time\\n" + (
    "children = [subprocess.Popen(['sleep', '61'], start_new_session=True) for _ in range(3)]\\n"
    "print(*(child.pid for child in children), flush=True)\\n"
    "time.sleep(60)\\n"
)
with nothing_outlives(SystemClock()):
    guard = subprocess.Popen([sys.executable, "-c", leg], stdout=subprocess.PIPE, start_new_session=True)
    orphans = [int(word) for word in guard.stdout.readline().split()]
    guard.kill()
    guard.wait()
    time.sleep(0.05)
    adopted = [open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()[1] == str(os.getpid()) for pid in orphans]
print(json.dumps({"orphans": orphans, "adopted": adopted, "mine_runs": mine.poll() is None}))
mine.kill()
mine.wait()
"""


def test_orphans_of_a_killed_leg_are_ended_and_strangers_are_not() -> None:
    done = subprocess.run([sys.executable, "-c", CONTROLLER], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["adopted"] == [True, True, True]
    assert said["mine_runs"]
    assert not [pid for pid in said["orphans"] if Path(PROC, str(pid)).exists()]
