"""Engine code that is touched while a campaign runs ends it before the next start."""

import json
import time
from pathlib import Path

from tests.fakes.campaign_repository import make_repository
from tests.fakes.lab_repository import LabRepository


def test_code_that_changes_between_two_starts_ends_the_run(tmp_path: Path) -> None:
    engine = LabRepository.create(tmp_path / "engine")
    repository = make_repository(tmp_path / "lab")
    profile = repository.root / "campaigns/hosts/test-host.yaml"
    profile.write_text(f"{profile.read_text()}sources: {{serving: {engine.top}}}\n")
    source = f'sources: [{{git: serving, commit: "{engine.head}"}}]'
    repository.campaign.write_text(f"{repository.campaign.read_text()}{source}\n")
    repository.commit()
    packet = repository.freeze()
    running = repository.start("consume-and-run", packet)
    while not list((repository.root / ".labctl/runs").glob("*/data/legs/01-A1/LEG_STARTED.json")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    engine.write("README.md", "Edited in the middle.\n")
    _, errors = running.communicate(timeout=60)
    (run,) = (path for path in (repository.root / ".labctl/runs").iterdir() if path.name.startswith("small-"))
    outcome = json.loads((run / "data/outcome.json").read_text())
    assert (running.returncode, outcome["cause"], outcome["legs_closed"]) == (5, "evidence", ["A1"]), errors
    assert "engine/README.md: expected a file as it was at preflight" in outcome["detail"][0]
    assert repository.status()[0]["state"] == "sealed_aborted"
