"""A small campaign repository with a component or a probe on sets of CPUs, for tests that run them as a user would.

`make_card_repository(folder, cards=2)` commits the campaign of `workers/scaled_rows.yaml`; `.spoil(card, code)` appends
code to the worker that runs on one card alone, while the worker file is being executed; `.say(**changes)` changes the
campaign's document. `make_probe_repository(folder, ranks=2)` commits a probe.
"""

from pathlib import Path
from typing import Any

import yaml

from tests.fakes.campaign_repository import HOST, CampaignRepository, write_yaml

WORKERS = Path(__file__).parent / "workers"
_ONLY_ON = """

import json as _json
import pathlib as _pathlib
import sys as _sys

if _json.loads(_pathlib.Path(_sys.argv[1]).read_text())["card_index"] == {card}:
"""
PROBE: dict[str, object] = {
    "labctl": 1,
    "kind": "probe",
    "id": "small",
    "title": "A small probe",
    "author": "Author <author@example.org>",
    "question": "How far do the ranks come?",
    "class": "exploratory",
    "host": "hosts/test-host.yaml",
    "interpreter": "torch",
    "backend": "gloo",
    "collective": {"operation": "all_reduce", "dtype": "float32", "elements": 1024, "expected": "sum_of_ranks"},
    "timeouts": {"stage_s": 20, "total_s": 40},
    "environment": {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
    "reviews": {"required": 0, "signatures": "none"},
    "authorizes": ["probe_run"],
}


class CardRepository(CampaignRepository):
    """One git work tree with one campaign on cards."""

    __slots__ = ()

    @property
    def worker(self) -> Path:
        """The worker file."""
        return self.root / "campaigns" / "workers" / "scaled_rows.py"

    def spoil(self, card: int, code: str) -> None:
        """Let the worker do something else on one card, and commit."""
        body = "".join(f"    {line}\n" for line in code.strip().splitlines())
        self.worker.write_text(self.worker.read_text() + _ONLY_ON.format(card=card) + body)
        self.commit()

    def say(self, **changes: object) -> None:
        """Change the campaign's document, key by key, and commit."""

        def change(document: dict[str, Any]) -> None:
            for key, value in changes.items():
                merged = {**document[key], **value} if isinstance(value, dict) else value
                document[key] = merged

        self.edit(change)

    def only_run(self) -> Path:
        """The one run that there is."""
        (run,) = (self.root / ".labctl" / "runs").glob("*-*")
        return run


def make_card_repository(folder: Path, cards: int) -> CardRepository:
    """A new repository with one component campaign."""
    document = yaml.safe_load((WORKERS / "scaled_rows.yaml").read_text())
    document |= {"host": "hosts/test-host.yaml", "id": "small", "cards": _cards(cards)}
    document["author"] = "Author <author@example.org>"
    repository = CardRepository(folder)
    repository.worker.parent.mkdir(parents=True)
    repository.worker.write_text((WORKERS / "scaled_rows.py").read_text())
    return _committed(repository, document)


def make_probe_repository(folder: Path, ranks: int) -> CardRepository:
    """A new repository with one probe."""
    return _committed(CardRepository(folder), PROBE | {"cards": _cards(ranks), "ranks": ranks})


def _cards(count: int) -> dict[str, object]:
    return {"vendor": "cpu", "count": count, "identities": "discover"}


def _committed(repository: CardRepository, document: dict[str, object]) -> CardRepository:
    host = HOST | {"interpreters": {"torch": "self"}}
    write_yaml(repository.root / "campaigns" / "hosts" / "test-host.yaml", host)
    write_yaml(repository.campaign, document)
    (repository.root / ".gitignore").write_text("/.labctl/\n")
    repository.git("init", "-q", "-b", "main")
    repository.commit()
    return repository
