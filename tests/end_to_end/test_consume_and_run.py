"""The main job, from a YAML file to a verdict, with a real server, a real marker, a real seal and a real analysis."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.fakes.campaign_repository import CampaignRepository, make_repository


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignRepository, "subprocess.CompletedProcess[str]"]:
    repository = make_repository(tmp_path_factory.mktemp("campaign"))
    repository.freeze()
    return repository, repository.labctl("consume-and-run", str(repository.campaign), "--json")


def _run(repository: CampaignRepository) -> Path:
    return Path(repository.status()[0]["run"])


def test_the_main_job_ends_with_a_verdict_and_every_gate_passed(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    _, answer = done
    assert answer.stdout, answer.stderr
    verdict = json.loads(answer.stdout)
    assert {gate["id"]: gate["result"] for gate in verdict["gates"]} == {
        "identity": "passed",
        "complete_rows": "passed",
        "treatment": "passed",
        "exact_tokens": "passed",
        "cross_leg_exact": "passed",
        "cold": "passed",
        "clean_log": "passed",
        "decision": "passed",
    }
    assert (verdict["verdict"], answer.returncode) == ("exploratory_pass", 0)
    assert verdict["is_stand_in"] is True


def test_the_legs_ran_in_the_packets_order(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    repository, _ = done
    assert sorted(folder.name for folder in (_run(repository) / "data" / "legs").iterdir()) == [
        "01-A1",
        "02-B1",
        "03-B2",
        "04-A2",
    ]


def test_the_run_checks_out_under_sha256sum(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    repository, _ = done
    answer = subprocess.run(
        ["sha256sum", "-c", "--strict", "--quiet", "manifest-sha256.txt"],
        cwd=_run(repository),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (0, "")


def test_a_consumed_packet_is_refused_by_its_id_and_by_its_campaign(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    repository, _ = done
    packet = repository.status()[0]["packet"]
    by_id = repository.labctl("consume-and-run", packet)
    by_campaign = repository.labctl("consume-and-run", str(repository.campaign))
    assert (by_id.returncode, by_campaign.returncode) == (3, 3)
    assert "[CONSUMED]" in by_id.stderr
    assert len(by_id.stderr.splitlines()) == 2  # what it was doing, and the refusal


def test_freezing_again_needs_the_spent_packets_name_and_counts_the_attempt(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    repository, _ = done
    spent = repository.status()[0]["packet"]
    refused = repository.labctl("packet", "freeze", str(repository.campaign))
    assert refused.returncode == 3
    assert f"--follows {spent}" in refused.stderr
    following = repository.freeze("--follows", spent)
    attempts = {one["packet"]: one["attempt"] for one in repository.status()}
    assert attempts == {spent: 1, following: 2}


def test_the_report_can_be_shown_again(done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"]) -> None:
    repository, _ = done
    answer = repository.labctl("report", str(_run(repository)))
    assert answer.returncode == 0
    assert "exploratory_pass" in answer.stdout


def test_a_second_analysis_needs_a_reason_and_never_touches_the_run(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    repository, _ = done
    run = _run(repository)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert repository.labctl("analyze", "sealed-run", str(run)).returncode == 3
    first = next((repository.root / ".labctl" / "analyses").iterdir())
    again = repository.labctl(
        "analyze", "sealed-run", str(run), "--supersedes", str(first), "--reason", "read once more"
    )
    assert again.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_nothing_is_left_in_the_scratch_root(
    done: tuple[CampaignRepository, "subprocess.CompletedProcess[str]"],
) -> None:
    repository, _ = done
    assert list((repository.root / ".labctl" / "scratch").iterdir()) == []
