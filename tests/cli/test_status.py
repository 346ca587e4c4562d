"""`labctl status` and `labctl runs list` in a repository where not everything is in order."""

import json
from pathlib import Path

import pytest

from tests.fakes.campaign_repository import CampaignRepository, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> CampaignRepository:
    made = make_repository(tmp_path / "campaign")
    made.freeze()
    hosts = made.campaign.parents[1] / "hosts"
    (hosts / "broken.yaml").write_text("labctl: 1\nkind: host\nid: &x broken\n")
    return made


def test_a_wrong_host_profile_is_told_and_hides_no_packet_of_the_others(repository: CampaignRepository) -> None:
    answer = repository.labctl("status", "--json")
    assert answer.returncode == 0
    assert [facts["state"] for facts in json.loads(answer.stdout)] == ["unconsumed"]
    told = answer.stderr.splitlines()
    assert "campaigns/hosts/broken.yaml:3:5: expected plain YAML, got the anchor &x" in answer.stderr
    assert all("/broken.yaml:" in line for line in told)


def test_runs_are_listed_beside_a_wrong_host_profile(repository: CampaignRepository) -> None:
    answer = repository.labctl("runs", "list")
    assert (answer.returncode, answer.stdout) == (0, "nothing was run here\n")
    assert "[YAML_FEATURE]" in answer.stderr


def test_where_nothing_may_be_overlooked_a_wrong_host_profile_is_refused(repository: CampaignRepository) -> None:
    answer = repository.labctl("seal", "abort", str(repository.root / ".labctl" / "runs" / "none"))
    assert answer.returncode == 3
    assert "[YAML_FEATURE]" in answer.stderr
