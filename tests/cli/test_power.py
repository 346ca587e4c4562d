"""`labctl power` and `labctl lane`, as a user calls them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.packet.opening import open_packet
from labctl.prereg.noise_file import load_noise_record
from labctl.rundir import AuthorizationPaths
from tests.fakes.campaign_repository import CampaignRepository, make_repository
from tests.fakes.consuming import consume
from tests.unit.analyze.test_pool import calibration

FIXTURES = Path(__file__).parents[1] / "fixtures" / "prereg"


def labctl(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("labctl")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_campaign_is_told_its_power_and_its_smallest_effect() -> None:
    answer = labctl("power", "plan", FIXTURES / "good" / "record.yaml")
    assert answer.returncode == 0
    assert "power for 2 % at alpha 0.05 with 2 and 2 starts: 0.99" in answer.stdout
    assert "the registered starts do" in answer.stdout
    document = json.loads(labctl("power", "plan", FIXTURES / "good" / "record.yaml", "--json").stdout)
    assert document["starts"] == [2, 2]


def test_an_underpowered_campaign_is_told_the_starts_that_would_do(tmp_path: Path) -> None:
    root = tmp_path / "campaigns"
    shutil.copytree(FIXTURES, root)
    campaign = root / "good" / "record.yaml"
    campaign.write_text(campaign.read_text().replace('planned_effect_percent: "2"', 'planned_effect_percent: "0.5"'))
    answer = labctl("power", "plan", campaign)
    assert "register 4 starts of each arm (8 in all)" in answer.stdout


def test_a_campaign_without_power_is_refused() -> None:
    answer = labctl("power", "plan", FIXTURES / "good" / "exploratory.yaml")
    assert answer.returncode == 3
    assert "a campaign that states a power" in answer.stderr


def test_sealed_calibrations_become_a_noise_record_once(tmp_path: Path) -> None:
    run, out = calibration().seal(tmp_path).root, tmp_path / "noise" / "bench.json"
    out.parent.mkdir()
    answer = labctl("power", "pool", run, "--out", out)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "1 runs, 4 starts of reference" in answer.stdout
    assert load_noise_record(out).model.id == "bench"
    again = labctl("power", "pool", run, "--out", out)
    assert (again.returncode, again.stdout) == (3, "")


@pytest.fixture
def repository(tmp_path: Path) -> CampaignRepository:
    return make_repository(tmp_path / "campaign")


def test_where_nothing_was_consumed_there_is_no_lane(repository: CampaignRepository) -> None:
    answer = repository.labctl("lane", "show")
    assert (answer.returncode, answer.stdout) == (0, "nothing was attempted here\n")


def test_a_lane_holds_every_attempt_at_it_whatever_its_campaign_is_called(repository: CampaignRepository) -> None:
    for number, name in enumerate(("first", "second"), start=1):
        repository.edit(lambda document, name=name: document.update(id=name))  # type: ignore[misc] # bound now
        packet = open_packet(AuthorizationPaths(repository.authorization).packet(repository.freeze()))
        consume(repository.authorization, packet, f"run-{number}")
    told = repository.labctl("lane", "show").stdout.splitlines()
    assert told[0].startswith("lane ")
    assert "engine:reference, wall_rate, machine " in told[0]
    assert [line.split(",")[0] for line in told[1:]] == ["  attempt 1: first", "  attempt 2: second"]
    assert told[2].endswith("no verdict; a pass by luck by then: 30.6 %")
    (lane,) = json.loads(repository.labctl("lane", "show", "--json").stdout)
    assert [one["attempt"] for one in lane["attempts"]] == [1, 2]
    assert lane["attempts"][1]["lucky_pass_chance"] == "11/36"
