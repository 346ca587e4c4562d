"""A rehearsal from the command line, and what `status`, `runs list` and `report` say of it afterwards."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.fakes.campaign_repository import CampaignRepository, make_repository

Rehearsed = tuple[CampaignRepository, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Rehearsed:
    repository = make_repository(tmp_path_factory.mktemp("campaign"))
    return repository, repository.labctl("rehearse", str(repository.campaign))


def test_a_rehearsal_frightens_nobody(done: Rehearsed) -> None:
    _, answer = done
    assert answer.returncode == 0, answer.stderr
    assert "rehearsal: nothing real is consumed" in answer.stderr
    told = answer.stderr + answer.stdout
    assert not [word for word in ("no second try", "is spent", "in its lane") if word in told]


def test_it_says_twice_that_the_registered_service_was_not_exercised(done: Rehearsed) -> None:
    _, answer = done
    assert "your service command is NOT exercised" in answer.stderr
    assert "note: your service command was NOT exercised" in answer.stdout
    assert "use --service real" in answer.stdout


def test_status_is_a_table_with_the_verdict_and_the_time(done: Rehearsed) -> None:
    repository, _ = done
    header, row = repository.labctl("status").stdout.splitlines()
    assert header.split("  ")[0] == "campaign"
    pattern = r"small +1 +rehearsal +[0-9a-f]{12} +sealed_completed +rehearsal_only +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(pattern, row), row
    assert header.index("verdict") == row.index("rehearsal_only")


def test_the_list_of_runs_names_folders_that_report_takes(done: Rehearsed) -> None:
    repository, _ = done
    _, row = repository.labctl("runs", "list").stdout.splitlines()
    assert "rehearsal_only" in row
    report = repository.labctl("report", row.split()[-1])
    assert (report.returncode, report.stdout.splitlines()[0]) == (0, "# small: rehearsal_only")


def test_json_has_everything(done: Rehearsed) -> None:
    repository, _ = done
    for words in (("status",), ("runs", "list")):
        (facts,) = json.loads(repository.labctl(*words, "--json").stdout)
        assert (facts["verdict"], facts["state"], facts["kind"]) == ("rehearsal_only", "sealed_completed", "rehearsal")
        assert Path(facts["run"]).is_dir()
        assert facts["consumed_wall_ns"] > 0
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", facts["consumed_utc"])


def test_a_superseded_analysis_is_not_the_verdict_that_stands(done: Rehearsed) -> None:
    repository, _ = done
    (first,) = (repository.root / ".labctl" / "analyses").iterdir()
    run = json.loads(repository.labctl("status", "--json").stdout)[0]["run"]
    again = repository.labctl("analyze", "sealed-run", run, "--supersedes", str(first), "--reason", "once more")
    assert again.returncode == 0, again.stderr
    (facts,) = json.loads(repository.labctl("status", "--json").stdout)
    assert facts["verdict"] == "rehearsal_only"


@pytest.mark.parametrize("named", ["nope", "campaigns/nope.yaml"])
@pytest.mark.parametrize("words", [("status",), ("report",), ("runs", "show"), ("plan",), ("rehearse",)])
def test_what_does_not_exist_is_refused_in_one_line(done: Rehearsed, words: tuple[str, ...], named: str) -> None:
    repository, _ = done
    answer = repository.labctl(*words, named)
    assert (answer.returncode, answer.stdout) == (3, "")
    (line,) = answer.stderr.splitlines()
    assert named in line


def test_a_campaign_that_was_never_frozen_is_no_fault(done: Rehearsed) -> None:
    repository, _ = done
    other = repository.campaign.with_name("other.yaml")
    other.write_text(repository.campaign.read_text().replace("id: small", "id: other"))
    answer = repository.labctl("status", str(other))
    assert (answer.returncode, answer.stdout) == (0, "no packet of other was frozen here\n")
    assert json.loads(repository.labctl("status", str(other), "--json").stdout) == []
