"""Component campaigns as a user runs them, to the verdict that both analyzers reach; workers honest and spoiled."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.card_repository import CardRepository, make_card_repository
from tests.fakes.worker_lies import LIES

# A worker that takes its own filtered view for the machine: what is sound outside a leg is not sound within one.
WANTS_EVERY_CARD = """
import json, pathlib, sys
order = pathlib.Path(sys.argv[1])
seen = json.loads((order.parent / "discovery.json").read_bytes())["cards"]
if len(seen) != 2:
    raise RuntimeError("two-card mapping drift")
"""
# A worker that takes a card's number for its identity: card 0 passes, every other one dies.
WANTS_ITS_NUMBER = """
import json, pathlib, sys
order = pathlib.Path(sys.argv[1])
(seen,) = json.loads((order.parent / "discovery.json").read_bytes())["cards"]
if seen["index"] != json.loads(order.read_bytes())["card_index"]:
    raise RuntimeError("filtered card mapping drift")
"""


def rehearsed(repository: CardRepository) -> tuple[int, dict[str, Any]]:
    """Exit status and verdict of a rehearsal beside a frozen packet, which must stay unspent."""
    repository.freeze()
    answer = repository.labctl("rehearse", str(repository.campaign), "--json")
    states = {one["kind"]: one["state"] for one in repository.status()}
    assert states["real"] == "unconsumed", answer.stderr
    return answer.returncode, json.loads(answer.stdout)


def consumed(repository: CardRepository) -> tuple[int, dict[str, Any]]:
    """Exit status and verdict of the real thing."""
    repository.freeze()
    answer = repository.labctl("consume-and-run", str(repository.campaign), "--json")
    return answer.returncode, json.loads(answer.stdout)


@pytest.mark.parametrize(
    ("worker", "card", "words"), [(WANTS_EVERY_CARD, 0, "two-card"), (WANTS_ITS_NUMBER, 1, "filtered card")]
)
def test_a_harness_that_misreads_a_filtered_card_fails_in_rehearsal(
    worker: str, card: int, words: str, tmp_path: Path
) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    repository.worker.write_text(repository.worker.read_text() + worker)
    repository.commit()
    status, verdict = rehearsed(repository)
    assert status == 4
    assert verdict["verdict"] == "infrastructure_abort_after_measurement_start"
    assert any(f"card{card}" in line and f"{words} mapping drift" in line for line in verdict["because"])
    results = [*["exact_component_pass"] * card, "component_failed", "not_run"]
    assert [one["result"] for one in verdict["cards"]] == results[:2]


def test_a_view_that_is_declared_elsewhere_fails_in_rehearsal(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=1)
    names = ("scaled", "moved", "doubled")  # as if every view began where its buffer begins
    repository.say(boundaries=[{"name": name, "of": "pair", "select": {"dim": 0, "index": 0}} for name in names])
    status, verdict = rehearsed(repository)
    assert (status, verdict["verdict"]) == (6, "rehearsal_only")
    (layouts,) = [gate for gate in verdict["gates"] if gate["result"] != "passed"]
    assert layouts["kind"] == "layouts"
    assert "boundary moved, control: storage offset: expected 0, observed 128" in layouts["reason"]


def test_one_flipped_bit_on_one_card_is_named_to_the_bit(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    repository.spoil(card=1, code=LIES["flipped_bit"])
    status, verdict = consumed(repository)
    assert (status, verdict["verdict"]) == (6, "component_failed")
    assert [one["result"] for one in verdict["cards"]] == ["exact_component_pass", "component_failed"]
    assert [one["assertions"] for one in verdict["cards"]] == [40, 39]
    (reason,) = verdict["because"]
    assert reason.startswith(
        "gate rows_exact failed: card1 shifted row 7 (w3, repeat 1), boundary cache1, layer 1, index [1,"
    )
    expected, observed = (int(part.split("0x")[1][:4], 16) for part in reason.split("bits ")[1:])
    assert expected ^ observed == 1


@pytest.mark.parametrize("lie", ["redirected_warnings", "hidden_warnings"])
def test_a_worker_that_hides_its_warnings_is_found_out_by_what_the_leg_kept(lie: str, tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=1)
    repository.worker.write_text(repository.worker.read_text() + LIES[lie])
    repository.commit()
    status, verdict = consumed(repository)
    assert (status, verdict["verdict"]) == (5, "invalid")
    assert [one["kind"] for one in verdict["gates"] if one["result"] == "failed"] == ["linkage"]


def test_a_pass_is_judged_again_only_by_name_and_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    status, verdict = consumed(repository)
    assert (status, verdict["verdict"]) == (0, "exact_2_card_component_pass")
    run = repository.only_run()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert repository.labctl("analyze", "sealed-run", str(run)).returncode == 3
    (first,) = (repository.root / ".labctl" / "analyses").iterdir()
    reason = ("--supersedes", str(first), "--reason", "the analyzer was repaired")
    answer = repository.labctl("analyze", "sealed-run", str(run), *reason, "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["verdict"] == "exact_2_card_component_pass"
    (second,) = set((repository.root / ".labctl" / "analyses").iterdir()) - {first}
    facts = json.loads((second / "seal.json").read_bytes())["predicate"]["facts"]
    assert facts["reason"] == "the analyzer was repaired"
    assert facts["supersedes"]
    assert facts["judged_by"].keys() == {"version", "tree_dirhash", "commit", "is_clean"}
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
