import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.lab_repository import LabRepository


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    """A campaign that needs one signed review by Ada, whose key is in `ada`."""
    lab = LabRepository.create(tmp_path / "lab")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(tmp_path / "ada")], check=True)
    lab.write("campaigns/allowed_signers", f"ada@x.org {(tmp_path / 'ada.pub').read_text()}")
    lab.edit_campaign(
        "{required: 0, signatures: none}", "{required: 1, signatures: ssh, allowed_signers: allowed_signers}"
    )
    lab.commit("Reviews")
    return lab


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


def test_a_review_goes_from_request_to_approval_to_the_list(lab: LabRepository, tmp_path: Path) -> None:
    frozen = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml")
    packet_id = frozen.stdout.split()[1]
    assert f"labctl review request {packet_id[:12]}" in frozen.stdout
    requested = labctl(lab, "review", "request", packet_id[:12])
    assert "sole difference: --speculative-config" in requested.stdout
    assert requested.stdout.splitlines()[-1].endswith('--reviewer "Name <mail>" --key PRIVATE_KEY')
    before = labctl(lab, "review", "list", packet_id)
    assert before.stdout == f"packet {packet_id}: 0 of 1 approvals\n"
    options = ["--reviewer", "Ada <ada@x.org>", "--key", str(tmp_path / "ada"), "--expires", "30", "--check", "read it"]
    approved = labctl(lab, "review", "approve", packet_id, *options)
    assert approved.returncode == 0
    assert approved.stdout.endswith(f"approved packet {packet_id}\n")
    after = labctl(lab, "review", "list", packet_id)
    assert after.stdout.splitlines()[0] == f"packet {packet_id}: 1 of 1 approvals"
    assert after.stdout.splitlines()[1].startswith("  counts: ")


def test_an_approval_that_cannot_count_exits_3(lab: LabRepository) -> None:
    packet_id = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml").stdout.split()[1]
    author = labctl(lab, "review", "approve", packet_id, "--reviewer", "Lab One <lab@example.org>")
    assert (author.returncode, author.stdout) == (3, "")
    assert "[REVIEWER_EXCLUDED]" in author.stderr
    unsigned = labctl(lab, "review", "approve", packet_id, "--reviewer", "Ada <ada@x.org>")
    assert unsigned.returncode == 3
    assert "[SIGNATURE_INVALID]" in unsigned.stderr


def test_a_key_of_somebody_else_files_nothing_and_stops_nobody(lab: LabRepository, tmp_path: Path) -> None:
    packet_id = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml").stdout.split()[1]
    key = ("--key", str(tmp_path / "ada"))
    junk = labctl(lab, "review", "approve", packet_id, "--reviewer", "Bob <bob@x.org>", *key)
    assert (junk.returncode, junk.stdout) == (3, "")
    assert "expected the key of bob@x.org, got the key of ada@x.org" in junk.stderr
    assert labctl(lab, "review", "approve", packet_id, "--reviewer", "Ada <ada@x.org>", *key).returncode == 0


def test_the_approvals_of_a_spent_campaign_are_listed_with_the_reasons(lab: LabRepository, tmp_path: Path) -> None:
    frozen = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml", "--json")
    packet_id = json.loads(frozen.stdout)["id"]
    approve = ("review", "approve", packet_id, "--reviewer", "Ada <ada@x.org>", "--key", str(tmp_path / "ada"))
    spoilt = Path(labctl(lab, *approve).stdout.split(": ")[0])
    spoilt.write_bytes(spoilt.read_bytes() + b" ")
    assert labctl(lab, *approve).returncode == 0
    marker = lab.top / ".labctl/authorization/markers" / f"{packet_id}.json"
    marker.parent.mkdir()
    marker.touch()
    listed = labctl(lab, "review", "list", "campaigns/quick/campaign.yaml")
    assert listed.returncode == 0
    assert "  does not count: " in listed.stdout
    assert "[SIGNATURE_INVALID]" in listed.stdout
    said = json.loads(labctl(lab, "review", "list", "campaigns/quick/campaign.yaml", "--json").stdout)
    assert (said["packet"], said["required"], len(said["count"])) == (packet_id, 1, 1)
    assert [problem["code"] for problem in said["do_not_count"]] == ["SIGNATURE_INVALID"]


def test_a_reviewer_without_a_mail_address_is_a_usage_fault(lab: LabRepository, tmp_path: Path) -> None:
    packet_id = labctl(lab, "packet", "freeze", "campaigns/quick/campaign.yaml").stdout.split()[1]
    answer = labctl(lab, "review", "approve", packet_id, "--reviewer", "Ada", "--key", str(tmp_path / "ada"))
    assert answer.returncode == 2
    assert "Name <mail@host>" in answer.stderr
