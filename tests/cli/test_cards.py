"""Campaigns on cards on the command line: planned, frozen, shown to reviewers, and refused where torch is missing."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.fakes.card_repository import CardRepository, make_card_repository, make_probe_repository


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> CardRepository:
    repository = make_card_repository(tmp_path_factory.mktemp("cards"), cards=2)
    repository.freeze()
    return repository


def test_a_plan_says_what_each_leg_runs_and_touches_nothing(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    answer = repository.labctl("plan", str(repository.campaign))
    assert answer.returncode == 0, answer.stderr
    assert "leg 2, card1, into data/legs/02-card1" in answer.stdout
    assert f"command: {sys.executable} -I -u" in answer.stdout
    assert "run_worker.py data/legs/01-card0/order.json" in answer.stdout
    assert "gates: rows_exact, layouts, pointers, weights_unchanged, microcases, devices" in answer.stdout
    assert answer.stdout.endswith("nothing was touched\n")
    assert not (tmp_path / ".labctl").exists()


def test_a_plan_of_a_probe_names_its_collective_and_its_bounds(tmp_path: Path) -> None:
    repository = make_probe_repository(tmp_path, ranks=2)
    answer = repository.labctl("plan", str(repository.campaign))
    assert answer.returncode == 0, answer.stderr
    assert "run_probe.py data/legs/01-probe/order.json RANK" in answer.stdout
    assert "one all_reduce of 1024 float32 over 2 ranks, gloo" in answer.stdout
    assert "environment: GLOO_SOCKET_IFNAME=lo" in answer.stdout


def test_a_reviewer_sees_cards_rows_and_what_is_compared(cards: CardRepository) -> None:
    answer = cards.labctl("review", "request", str(cards.campaign))
    assert answer.returncode == 0, answer.stderr
    for words in (
        "cards: 2 of cpu, discover",
        "order card0 card1, one leg a card, at most 60 s each",
        "rows a leg: 8: arms plain, shifted; cases w1, w3; 2 repeats",
        "control and candidate are compared at: scaled, moved, doubled, every cache",
        "microcases: capture_refused, wide_is_inert",
        "component-run_worker.py: labctl/component/run_worker.py",
        "worker.py: campaigns/workers/scaled_rows.py",
    ):
        assert words in answer.stdout
    assert "engine vocabulary" not in answer.stdout


def test_an_interpreter_without_torch_is_refused_at_freeze(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path / "lab", cards=1)
    bare = tmp_path / "bare" / "bin"
    bare.mkdir(parents=True)
    (bare.parent / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (bare / "python").symlink_to(Path(sys.executable).resolve())
    host = repository.root / "campaigns" / "hosts" / "test-host.yaml"
    host.write_text(
        yaml.safe_dump(yaml.safe_load(host.read_text()) | {"interpreters": {"torch": str(bare / "python")}})
    )
    repository.commit()
    answer = repository.labctl("packet", "freeze", str(repository.campaign))
    assert answer.returncode == 3
    assert "expected an interpreter with torch, got none" in answer.stderr
    assert "[NOT_FOUND]" in answer.stderr


def test_a_changed_worker_is_another_packet(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=1)
    first = repository.freeze()
    repository.spoil(0, "pass")
    answer = repository.labctl("packet", "freeze", str(repository.campaign))
    assert answer.returncode == 0, answer.stderr
    second = answer.stdout.split()[1]
    difference = repository.labctl("packet", "diff", first, second)
    assert "worker.py" in difference.stdout
