"""Each class of a probe is produced by a rank that really has the fault, and is told as that class."""

import json
from pathlib import Path

import pytest

from tests.fakes.card_repository import make_probe_repository
from tests.fakes.spoiled_packet import freeze_spoiled

STAGE = """

import signal
import time

_honest = Rank.{method}


def _spoiled(self):
    if self.rank == 1:
        {fault}
    return _honest(self)


Rank.{method} = _spoiled
"""
AFTERWARDS = """

_honest = run_rank


def run_rank(rank):
    status = _honest(rank)
    if rank.rank == 1:
        {fault}
    return status
"""
REMOVE = "(rank.order.leg_folder / 'rank-1.jsonl').unlink()"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
FAULTS = {
    "a rank is killed before the group is there": (STAGE, "initialise_group", KILL, "process_group_init_failure"),
    "a rank hangs before the collective": (STAGE, "start", "time.sleep(600)", "pre_collective_failure"),
    "a rank brings something else": (STAGE, "start", "self.tensor += 1", "verification_failure"),
    "a rank ends badly after all": (AFTERWARDS, "", "return 3", "process_exit_failure"),
    "a rank's record is missing": (AFTERWARDS, "", REMOVE, "harness_failure"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_one_rank_gives_its_own_class(tmp_path: Path, name: str) -> None:
    template, method, fault, stage_class = FAULTS[name]
    repository = make_probe_repository(tmp_path, ranks=2)
    repository.say(timeouts={"stage_s": 3, "total_s": 10})
    packet = freeze_spoiled(repository, "probe.py", template.format(method=method, fault=fault))
    answer = repository.labctl("consume-and-run", packet, "--json")
    assert answer.stdout, answer.stderr
    assert json.loads(answer.stdout)["verdict"] == stage_class
    assert answer.returncode in (5, 6)
    assert repository.status()[0]["state"] == "sealed_completed"
