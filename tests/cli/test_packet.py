import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.lab_repository import LabRepository


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    return LabRepository.create(tmp_path / "lab")


def labctl(lab: LabRepository, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        [sys.executable, "-c", "from labctl.cli.main import main; main()", *arguments],
        cwd=lab.top,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def frozen_id(lab: LabRepository, *arguments: str) -> str:
    answer = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml", *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()[1]


def test_freezing_says_what_was_frozen_and_what_comes_next(lab: LabRepository) -> None:
    answer = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml")
    assert answer.returncode == 0
    assert answer.stdout.startswith("packet ")
    assert answer.stdout.endswith("`labctl consume-and-run campaigns/quick/campaign.yaml`\n")
    assert "holding the work tree against commit" in answer.stderr
    assert (lab.top / ".labctl/authorization/packets" / answer.stdout.split()[1] / "packet.json").is_file()


def test_a_dirty_tree_exits_3_with_one_line_for_each_file(lab: LabRepository) -> None:
    lab.write("README.md", "dirty\n")
    lab.write(".gitignore", "")
    answer = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml")
    assert answer.returncode == 3
    assert answer.stdout == ""
    assert [line.rsplit(" ", 1)[1] for line in answer.stderr.splitlines() if "DIRTY" in line] == ["[DIRTY_SOURCE]"] * 2


def test_a_spent_packet_exits_3_and_names_the_command_for_the_next(lab: LabRepository) -> None:
    first = frozen_id(lab)
    marker = lab.top / ".labctl/authorization/markers" / f"{first}.json"
    marker.parent.mkdir()
    marker.touch()
    answer = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml")
    assert answer.returncode == 3
    assert f"--follows {first}" in answer.stderr
    second = frozen_id(lab, "--follows", first)
    shown = labctl(lab, "packet", "diff", first, second)
    assert shown.stdout.splitlines() == ["attempt: was 1, now 2", f"follows: was absent, now {first}"]


def test_a_packet_is_shown_by_id_campaign_and_as_json(lab: LabRepository) -> None:
    packet_id = frozen_id(lab)
    by_id = labctl(lab, "packet", "show", packet_id[:12])
    by_campaign = labctl(lab, "packet", "show", "campaigns/quick/campaign.yaml")
    assert by_id.stdout == by_campaign.stdout
    assert by_id.stdout.splitlines()[0] == f"packet {packet_id}"
    document = json.loads(labctl(lab, "packet", "show", packet_id, "--json").stdout)
    assert document["id"] == packet_id
    assert document["packet"]["preregistration"]["id"] == "quick"


def test_of_a_campaign_that_is_spent_the_last_packet_is_shown(lab: LabRepository) -> None:
    packet_id = frozen_id(lab)
    marker = lab.top / ".labctl/authorization/markers" / f"{packet_id}.json"
    marker.parent.mkdir()
    marker.touch()
    answer = labctl(lab, "packet", "show", "campaigns/quick/campaign.yaml")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[0] == f"packet {packet_id}"
    refused = labctl(lab, "consume-and-run", "campaigns/quick/campaign.yaml")
    assert refused.returncode == 3
    command = f"labctl packet freeze campaigns/quick/campaign.yaml --follows {packet_id}"
    assert f"`{command}`" in refused.stderr
    assert labctl(lab, *command.split()[1:]).returncode == 0


def test_the_same_packet_twice_has_no_difference(lab: LabRepository) -> None:
    packet_id = frozen_id(lab)
    assert labctl(lab, "packet", "diff", packet_id, packet_id).stdout == f"the packets are the same: {packet_id}\n"


def test_a_packet_that_is_not_there_exits_3(lab: LabRepository) -> None:
    answer = labctl(lab, "packet", "show", "f" * 64)
    assert answer.returncode == 3
    assert answer.stderr.rstrip().endswith("[NOT_FOUND]")


def test_a_broken_packet_exits_5(lab: LabRepository) -> None:
    packet_id = frozen_id(lab)
    (lab.top / ".labctl/authorization/packets" / packet_id / "engine.json").write_bytes(b"{}")
    answer = labctl(lab, "packet", "show", packet_id)
    assert answer.returncode == 5
    assert "[DIGEST_MISMATCH]" in answer.stderr
