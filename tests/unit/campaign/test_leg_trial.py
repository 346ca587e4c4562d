import sys
from pathlib import Path

import pytest

from labctl.campaign.leg_process import bytecode_folder
from labctl.campaign.leg_trial import leg_trial_look
from labctl.codes import Code


def test_a_leg_that_starts_is_compiled_for_the_legs_to_come(tmp_path: Path) -> None:
    assert leg_trial_look(tmp_path).is_met
    compiled = {path.name.partition(".")[0] for path in bytecode_folder(tmp_path).rglob("*.pyc")}
    assert {"endpoint", "component", "probe", "session"} <= compiled


@pytest.mark.parametrize(
    ("interpreter", "got"),
    [("/bin/false", "exit status 1: nothing on its error output"), ("/no/such/python", "No such file or directory")],
)
def test_a_leg_that_cannot_start_costs_no_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: str, got: str
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    look = leg_trial_look(tmp_path)
    assert (look.is_met, look.code) == (False, Code.PREFLIGHT)
    assert got in look.observed
    assert look.do
