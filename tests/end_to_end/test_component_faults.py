"""Candidates that are not the control, as a user meets them: named to the bit, and found by a rehearsal."""

import json
import struct
from pathlib import Path
from typing import Any

from labctl.analyze.component.draws import draw_bytes
from labctl.records.component import ComponentRecord
from labctl.records.component_row import DrawnTensor, read_rows
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


def expected_bits(leg: Path) -> int:
    """The bits that the control has at boundary `moved` of row 7, index [1, 2, 5], from the two draws alone."""
    row = read_rows((leg / "rows.jsonl").read_bytes(), "rows")[6]
    record = ComponentRecord.from_json((leg / "component.json").read_bytes(), "component")
    (rows,) = [one for one in row.inputs if one.tensor.name == "rows"]
    (scale,) = record.weights_before
    hidden = rows.tensor.shape[1]
    scaled = rounded(element(rows, 2 * hidden + 5) * element(scale, hidden + 5))
    return bits_of(rounded(scaled + 2))


def element(drawn: DrawnTensor, place: int) -> float:
    data = draw_bytes(drawn)
    assert data is not None
    (value,) = struct.unpack("<f", bytes(2) + data[2 * place : 2 * place + 2])
    assert isinstance(value, float)
    return value


def rounded(value: float) -> float:
    """The nearest bfloat16, to even."""
    (value,) = struct.unpack("<f", struct.pack("<I", bits_of(value) << 16))
    return value


def bits_of(value: float) -> int:
    (word,) = struct.unpack("<I", struct.pack("<f", value))
    return int((word + 0x7FFF + (word >> 16 & 1)) >> 16)


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
    where = "card1 shifted row 7 (w3, repeat 1), boundary moved, layer 1, index [1, 2, 5]"
    right = expected_bits(repository.only_run() / "data" / "legs" / "02-card1")
    sides = (f"bits {right:#06x}", f"bits {right ^ 1:#06x}")
    miss = failed[0]["misses"][0]
    assert (miss["where"], miss["expected"], miss["observed"]) == (where, *sides)
    (reason,) = verdict["because"]
    said = f"{where}: first element that differs: expected {sides[0]}, observed {sides[1]}"
    assert reason.startswith(f"gate rows_exact failed: {said}")


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
