"""A campaign with a sealed coin runs the order that its marker fixed, and nobody could know it before."""

import json
from pathlib import Path

import pytest

from labctl.prereg.designs import Mirror, drawn_order
from tests.fakes.campaign_repository import CampaignRepository, make_repository

ABBA = ("A1", "B1", "B2", "A2")


@pytest.fixture
def repository(tmp_path: Path) -> CampaignRepository:
    made = make_repository(tmp_path / "campaign")
    made.edit(lambda document: document.update(schedule={"design": "abba", "mirror": "sealed_coin"}))
    return made


def test_the_order_of_a_mirrored_campaign_is_the_one_that_its_marker_fixed(repository: CampaignRepository) -> None:
    plan = repository.labctl("plan", str(repository.campaign)).stdout
    assert "a sealed coin decides whether this order runs" in plan
    packet_id = repository.freeze()
    shown = repository.labctl("review", "request", packet_id[:12])
    assert "order A1 B1 B2 A2 or its mirror, by a sealed coin" in shown.stdout
    done = repository.labctl("consume-and-run", packet_id, timeout_s=300)
    assert done.returncode == 0, done.stderr
    marker = json.loads((repository.authorization / "markers" / f"{packet_id}.json").read_text())
    drawn = drawn_order(ABBA, Mirror.SEALED_COIN, marker["nonce"])
    assert tuple(marker["order"]) == drawn
    (run,) = (repository.root / ".labctl" / "runs").glob("small-*")
    events = [json.loads(line) for line in (run / "data" / "journal.jsonl").read_text().splitlines()]
    assert tuple(event["leg"] for event in events if event["event"] == "leg_started") == drawn
    assert json.loads((run / "seal.json").read_text())["predicate"]["order"] == list(drawn)
    facts = json.loads(repository.labctl("runs", "show", str(run), "--json").stdout)
    assert facts["order"] == list(drawn)
    assert "a sealed coin chose between two mirrors" in done.stdout
