"""The sealed vLLM examples, gate by gate: what each was made to show is what its bytes show."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES, MODEL = ROOT / "runs.example", ROOT / "campaigns" / "vllm-cpu-ngram" / "model"


@cache
def verdict_of(name: str) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-m", "labctl.analyze", str(EXAMPLES / name)], capture_output=True, check=True
    )
    verdict: dict[str, Any] = json.loads(answer.stdout)
    return verdict


def standalone_verdict_of(name: str) -> dict[str, Any]:
    analyzer = EXAMPLES / name / "data" / "analyzers" / "analyze_run.py"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(analyzer), str(EXAMPLES / name)], capture_output=True, check=True, cwd="/"
    )
    verdict: dict[str, Any] = json.loads(answer.stdout)
    return verdict


def not_passed(verdict: dict[str, Any]) -> dict[str, str]:
    return {gate["id"]: gate["result"] for gate in verdict["gates"] if gate["result"] != "passed"}


def gate_of(verdict: dict[str, Any], gate_id: str) -> dict[str, Any]:
    (gate,) = (gate for gate in verdict["gates"] if gate["id"] == gate_id)
    return dict(gate)


def measured(verdict: dict[str, Any], figure: str) -> dict[str, str]:
    return {one["where"]: one["value"] for one in verdict["effect"] if one["name"] == figure}


def events_of(name: str, leg: str, row: int) -> Iterator[dict[str, Any]]:
    """The events of one answer, read from the bytes as they came."""
    (wire,) = (EXAMPLES / name / "data" / "legs").glob(f"*-{leg}/wire/{row:02d}.bin")
    rest, body = wire.read_bytes().partition(b"\r\n\r\n")[2], b""
    while size := int(rest.partition(b"\r\n")[0], 16):
        start = rest.index(b"\r\n") + 2
        body, rest = body + rest[start : start + size], rest[start + size + 2 :]
    for event in re.findall(rb"data: (\{.*\})", body):
        yield json.loads(event)


def tokens_of(name: str, leg: str, row: int) -> list[int]:
    choices = [choice for event in events_of(name, leg, row) for choice in event["choices"]]
    return [token for choice in choices for token in choice.get("token_ids") or []]


@pytest.mark.parametrize("name", ["vllm-cpu-kv", "vllm-cpu-chat"])
def test_every_gate_of_a_good_example_passed(name: str) -> None:
    assert not_passed(verdict_of(name)) == not_passed(standalone_verdict_of(name)) == {}


def test_an_eight_bit_cache_holds_four_times_the_tokens() -> None:
    verdict = verdict_of("vllm-cpu-kv")
    assert verdict["verdict"] == "comparison_measured"
    assert measured(verdict, "kv_capacity_tokens") == {"A": "262144", "B": "1048576"}
    assert measured(verdict, "kv_capacity_ratio") == {"B vs A": "4"}
    assert list(measured(verdict, "resident_bytes_difference")) == ["B vs A"]


def test_an_eight_bit_cache_changes_answers_and_both_arms_repeat_theirs() -> None:
    verdict = verdict_of("vllm-cpu-kv")
    exact = {one["where"]: one["value"] for one in gate_of(verdict, "exact_within_arms")["figures"]}
    assert exact == {"A2": "5", "B2": "5"}
    places = measured(verdict, "first_difference")
    for row in range(1, 6):
        pairs = enumerate(zip(tokens_of("vllm-cpu-kv", "A1", row), tokens_of("vllm-cpu-kv", "B1", row), strict=True))
        place = next((place for place, (one, other) in pairs if one != other), None)
        assert places.get(f"row {row}") == (None if place is None else str(place))
    assert places
    assert measured(verdict, "differing_rows") == {"B vs A": str(len(places))}


@pytest.mark.parametrize("leg", ["A1", "B1"])
def test_chat_goes_through_the_template_that_the_manifest_pins(leg: str) -> None:
    special = json.loads((MODEL / "tokenizer.json").read_bytes())["added_tokens"]
    ids = {token["content"]: token["id"] for token in special}
    prompt = next(events_of("vllm-cpu-chat", leg, 3))["prompt_token_ids"]
    turns = [token for token in prompt if token in ids.values()]
    asked_and_told = [ids["<|user|>"], ids["<|assistant|>"]]
    assert (prompt[0], prompt[-1]) == (ids["<|user|>"], ids["<|assistant|>"])
    assert turns == [*asked_and_told, ids["<|end|>"], *asked_and_told]


def test_speculation_left_every_chat_token_as_it_was() -> None:
    verdict = verdict_of("vllm-cpu-chat")
    assert verdict["verdict"] == "exploratory_pass"
    assert gate_of(verdict, "exact_tokens")["figures"]
    counted = gate_of(verdict, "accounting")["figures"]
    drafts = {one["where"]: int(one["value"]) for one in counted if one["name"] == "drafts"}
    assert drafts["B1"] > 0


def test_a_cache_of_prefixes_fails_the_cold_gate_and_no_other() -> None:
    verdict = verdict_of("vllm-cpu-prefix")
    assert verdict["verdict"] == "negative_or_inconclusive_stop"
    assert not_passed(verdict) == not_passed(standalone_verdict_of("vllm-cpu-prefix")) == {"cold": "failed"}
    assert "cold" in " ".join(verdict["because"])
