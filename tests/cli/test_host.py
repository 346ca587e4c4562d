"""`labctl host check`: what a machine has, and exit status 3 where something is wrong."""

import json
from dataclasses import replace
from pathlib import Path

import yaml

from tests.fakes.campaign_repository import CampaignRepository, make_repository
from tests.fakes.xpu_smi import FakeMachine, four_cards, install

FIRST = "00000000-0000-0023-0000-0000e2238086"


def with_intel(folder: Path, machine: FakeMachine, **devices: object) -> CampaignRepository:
    """A campaign repository whose host profile names a fake `xpu-smi`."""
    made = make_repository(folder / "campaign")
    host = Path(host_file(made))
    document = yaml.safe_load(host.read_text())
    document["devices"] = {"xpu_smi": str(install(folder / "bin", machine)), **devices}
    host.write_text(yaml.safe_dump(document))
    return made


def host_file(made: CampaignRepository) -> str:
    return str(next((made.root / "campaigns" / "hosts").glob("*.yaml")))


def test_a_machine_is_shown_with_its_cards_and_rules(tmp_path: Path) -> None:
    made = with_intel(tmp_path, four_cards())
    answer = made.labctl("host", "check", host_file(made))
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("machine ")
    assert "intel     cards: 4, by xpu-smi 1.3.1.20250808, driver I915_25.18.33578.51" in lines
    (card,) = (line for line in lines if FIRST in line)
    assert "0000:23:00.0  Intel(R) Arc(TM) Pro B70 Graphics, 34 of 32656 MiB used, observer xpu-smi (" in card


def test_a_busy_card_and_a_full_disk_are_wrong_at_once(tmp_path: Path) -> None:
    made = with_intel(tmp_path, replace(four_cards(), clients=((0, 4242, "python3", 9),)))
    file = Path(host_file(made))
    file.write_text(file.read_text().replace("min_free_mib: 64", "min_free_mib: 1000000000"))
    answer = made.labctl("host", "check", str(file))
    assert answer.returncode == 3
    told = answer.stderr.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == ["[DISK_FULL]", "[HOST_BUSY]"]
    assert f"card {FIRST}: expected no process on it, got python3 (4242)" in told[1]


def test_cards_that_the_profile_wants_and_the_machine_lacks_are_wrong(tmp_path: Path) -> None:
    wanted = {"vendor": "intel", "count": 5, "identities": "discover"}
    made = with_intel(tmp_path, four_cards(), idle_cards=wanted)
    answer = made.labctl("host", "check", host_file(made), "--json")
    assert answer.returncode == 3
    document = json.loads(answer.stdout)
    assert [problem.rpartition(" ")[2] for problem in document["problems"]] == ["[WRONG_CARD]"]
    assert len(document["cards"]["intel"]["discovery"]["cards"]) == 4


def test_a_tool_that_gives_no_answer_is_wrong_and_the_rest_is_shown(tmp_path: Path) -> None:
    made = with_intel(tmp_path, replace(four_cards(), hangs_in="discovery"), timeout_s=1)
    answer = made.labctl("host", "check", host_file(made))
    assert answer.returncode == 3
    assert "no end after 1 s, so it was killed" in answer.stderr
    assert "intel     no answer" in answer.stdout
    assert "cpu       cards: 1" in answer.stdout


def test_without_a_profile_machine_and_cards_are_shown(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "campaign")
    answer = made.labctl("host", "check", "--json")
    document = json.loads(answer.stdout)
    assert document["looks"] == []
    assert document["cards"]["cpu"]["discovery"]["cards"][0]["vendor"] == "cpu"


def test_a_wrong_profile_is_refused_with_its_place(tmp_path: Path) -> None:
    made = with_intel(tmp_path, four_cards(), timeout_s=0)
    answer = made.labctl("host", "check", host_file(made))
    assert answer.returncode == 3
    assert "[WRONG_VALUE]" in answer.stderr
