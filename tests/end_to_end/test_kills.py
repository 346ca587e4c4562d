"""Kills at random moments, in the small form; `make faults` does two hundred."""

from pathlib import Path

from tests.faults.crash.kills import LEGAL, kill_campaigns

KILLS = 5


def test_a_kill_at_any_moment_leaves_a_legal_state_and_no_second_consumption(tmp_path: Path) -> None:
    states = kill_campaigns(tmp_path, KILLS, seed=20)
    assert states.total() == KILLS
    assert set(states) <= LEGAL
