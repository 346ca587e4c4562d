"""Candidates that are not the control, as a user meets them: named to the bit, and found by a rehearsal."""

import json
from pathlib import Path
from typing import Any

from tests.fakes.card_repository import make_card_repository

FLIP = """
import dataclasses
_call = Kept.__call__
def _flipped(self, call):
    def at(name, tensor):
        if name == "moved" and call.sizes["width"] == 3 and self.fresh.shift == 2:
            tensor.view(torch.int16)[1, 2, 5] ^= 1
        call.at(name, tensor)
    _call(self, dataclasses.replace(call, at=at))
Kept.__call__ = _flipped
"""
COPY = """
import dataclasses
_call = Kept.__call__
def _copied(self, call):
    def at(name, tensor):
        call.at(name, tensor.clone() if name == "moved" else tensor)
    _call(self, dataclasses.replace(call, at=at))
Kept.__call__ = _copied
"""


def gates_of(verdict: dict[str, Any]) -> dict[str, str]:
    return {gate["id"]: gate["result"] for gate in verdict["gates"]}


def test_one_bit_of_one_element_fails_and_the_verdict_names_it(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    repository.spoil(1, FLIP)
    repository.freeze()
    answer = repository.labctl("consume-and-run", str(repository.campaign), "--json")
    assert answer.stdout, answer.stderr
    verdict = json.loads(answer.stdout)
    assert (verdict["verdict"], answer.returncode) == ("component_failed", 6)
    told = json.dumps(verdict["because"])
    assert all(word in told for word in ("card1", "shifted", "w3", "moved"))
    failed = [gate for gate in verdict["gates"] if gate["result"] != "passed"]
    assert [gate["id"] for gate in failed] == ["rows_exact"]
    miss = json.dumps(failed[0]["misses"][0])
    assert all(word in miss for word in ("card1", "shifted", "w3", "moved", "layer 1"))
    assert "1, 2, 5" in miss


def test_a_rehearsal_finds_a_view_that_is_a_copy_before_any_packet_is_spent(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=1)
    repository.spoil(0, COPY)
    repository.freeze()
    answer = repository.labctl("rehearse", str(repository.campaign), "--json")
    assert answer.stdout, answer.stderr
    verdict = json.loads(answer.stdout)
    assert verdict["verdict"] == "rehearsal_only"
    gates = gates_of(verdict)
    assert gates["layouts"] == "failed"
    assert gates["rows_exact"] == "passed"
    (layouts,) = [gate for gate in verdict["gates"] if gate["id"] == "layouts"]
    assert "storage offset" in json.dumps(layouts["misses"])
    assert [(one["kind"], one["state"]) for one in repository.status()] == [
        ("real", "unconsumed"),
        ("rehearsal", "sealed_completed"),
    ]
