import subprocess
import sys
from pathlib import Path

import pytest

from labctl.campaign.checks import every_look
from labctl.campaign.ledger_mirror import LedgerMirror
from labctl.campaign.look import Look
from labctl.codes import Code
from labctl.ledger import LedgerEvent, append_ledger
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.rundir import AuthorizationPaths
from tests.fakes.lab_repository import LabRepository
from tests.faults.before_marker import preflight_request

QUESTION = "from labctl.campaign.checks import assertions_look as look; print(look().is_met, look().observed)"


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ([], "True optimization level 0"),
        (["-O"], "False optimization level 1"),
        (["-OO"], "False optimization level 2"),
    ],
)
def test_an_interpreter_without_assertions_runs_no_campaign(options: list[str], answer: str) -> None:
    said = subprocess.run([sys.executable, "-I", *options, "-c", QUESTION], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == answer


def mirror_look(lab: LabRepository, campaign_class: str) -> Look:
    changes: dict[str, object] = {"preregistration": {"class": campaign_class}, "host": {"remote": "origin"}}
    (found,) = (look for look in every_look(preflight_request(lab, **changes)) if look.name == "mirror")
    return found


def test_only_a_record_needs_the_mirror_but_everybody_looks_into_it(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    assert [mirror_look(lab, kind).is_met for kind in ("record", "exploratory")] == [False, True]
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "origin")], check=True)
    lab.git("remote", "add", "origin", str(tmp_path / "origin"))
    assert [mirror_look(lab, kind).observed for kind in ("record", "exploratory")] == ["0 lines there"] * 2
    elsewhere = AuthorizationPaths(tmp_path / "elsewhere")
    packet = freeze_packet(FreezeRequest(lab.campaign))
    append_ledger(elsewhere.ledger, LedgerEvent("consumed", packet.id, "quick", "quick-1", "0" * 64, 1))
    LedgerMirror(lab.top, "origin", elsewhere).publish()
    refused = mirror_look(lab, "exploratory")
    assert (refused.code, refused.is_met) == (Code.CONSUMED, False)


def test_a_campaign_without_a_remote_has_no_mirror(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    assert "mirror" not in {look.name for look in every_look(preflight_request(lab))}
