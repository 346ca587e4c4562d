"""Ranks as real processes over gloo."""

import hashlib
import struct
from pathlib import Path

import pytest

from labctl.records.probe import STAGES, AllocatedDetail, GroupDetail, RankFailed, ResultVerified, TensorAllocated
from tests.fakes.component_worker import NONCE
from tests.fakes.probe_ranks import ProbeRun, run_ranks

HEAD = """
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from labctl.component.probe import Rank, read_probe_order, run_rank
"""
TAIL = """
sys.exit(run_rank(Spoiled(read_probe_order(Path(sys.argv[1])), int(sys.argv[2]))))
"""


def pattern(ranks_sum: int) -> bytes:
    shift = int(NONCE[:16], 16) % 251
    return b"".join(struct.pack("<f", ranks_sum * (1 + (place + shift) % 251)) for place in range(1000))


def run_spoiled(folder: Path, body: str) -> ProbeRun:
    program = folder / "spoiled.py"
    program.write_text(HEAD + body + TAIL, encoding="utf-8")
    return run_ranks(folder, 2, {1: program})


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> ProbeRun:
    return run_ranks(tmp_path_factory.mktemp("probe"), 4)


def test_four_ranks_reach_every_stage_once_and_end_cleanly(clean: ProbeRun) -> None:
    assert clean.statuses == (0, 0, 0, 0)
    assert [clean.stages(rank) for rank in range(4)] == [STAGES] * 4


def test_digests_of_operand_and_sum_follow_from_the_nonce(clean: ProbeRun) -> None:
    for rank in range(4):
        allocated = next(line for line in clean.lines(rank) if isinstance(line, TensorAllocated))
        verified = next(line for line in clean.lines(rank) if isinstance(line, ResultVerified))
        assert isinstance(allocated.detail, AllocatedDetail)
        assert allocated.detail.sha256 == hashlib.sha256(pattern(rank + 1)).hexdigest()
        assert verified.detail.sha256 == hashlib.sha256(pattern(10)).hexdigest()
        assert verified.detail.data_ptr == allocated.detail.data_ptr


def test_each_rank_tells_its_own_place_in_the_group(clean: ProbeRun) -> None:
    details = [line.detail for rank in range(4) for line in clean.lines(rank) if isinstance(line.detail, GroupDetail)]
    assert [(one.backend, one.world_size, one.group_rank) for one in details] == [
        ("gloo", 4, rank) for rank in range(4)
    ]
    assert len({clean.lines(rank)[0].pid for rank in range(4)}) == 4


def test_a_wrong_operand_is_a_wrong_sum_on_every_rank(tmp_path: Path) -> None:
    run = run_spoiled(
        tmp_path,
        """
class Spoiled(Rank):
    def start(self):
        self.tensor[17] += 1
        return {}
""",
    )
    assert run.statuses == (4, 4)
    for rank in range(2):
        last = run.lines(rank)[-1]
        assert isinstance(last, RankFailed)
        assert last.detail.reaching == "verified"
        assert '"index": [17]' in last.detail.message
        assert run.stages(rank)[-2] == "all_reduce-done"


def test_a_rank_that_is_killed_before_the_collective_fails_the_other_there(tmp_path: Path) -> None:
    run = run_spoiled(
        tmp_path,
        """
class Spoiled(Rank):
    def start(self):
        os.kill(os.getpid(), signal.SIGKILL)
""",
    )
    assert run.statuses == (4, -9)
    assert run.stages(1) == STAGES[:4]
    assert run.stages(0) == (*STAGES[:5], "failed")


def test_a_rank_that_never_comes_is_bounded_by_the_stages_time(tmp_path: Path) -> None:
    program = tmp_path / "absent.py"
    program.write_text("raise SystemExit(1)\n", encoding="utf-8")
    run = run_ranks(tmp_path, 2, {1: program}, stage_s=2)
    assert run.statuses == (4, 1)
    assert run.stages(0) == (*STAGES[:2], "failed")
    assert not (run.leg / "rank-1.jsonl").exists()
