"""A host profile that names a remote: consumption and seal are seen there, and a deleted witness is missed."""

import json
import shutil
from pathlib import Path

from tests.fakes.campaign_repository import make_repository


def test_the_remote_sees_what_happened_and_misses_what_was_deleted(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "lab")
    profile = repository.root / "campaigns/hosts/test-host.yaml"
    profile.write_text(f"{profile.read_text()}remote: origin\n")
    repository.edit(lambda document: document.update(schedule={"order": ["A1", "B1"]}))
    repository.git("init", "-q", "--bare", str(tmp_path / "origin.git"))
    repository.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    packet = repository.freeze()
    done = repository.labctl("consume-and-run", packet)
    assert "sealing" in done.stderr, done.stderr
    shown = repository.git("--git-dir", str(tmp_path / "origin.git"), "grep", "-h", "", "refs/labctl/ledger")
    lines = [json.loads(line) for line in shown.splitlines()]
    assert [(line["event"], line["packet_sha256"]) for line in lines] == [("consumed", packet), ("sealed", packet)], (
        done
    )
    shutil.rmtree(repository.authorization / "markers")
    shutil.rmtree(repository.authorization / "ledger")
    again = repository.labctl("consume-and-run", packet)
    assert again.returncode == 3
    assert "[LEDGER_BROKEN]" in again.stderr
    assert not (repository.authorization / "markers").exists()
