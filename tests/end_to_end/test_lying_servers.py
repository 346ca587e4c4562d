"""A real server that lies about one thing is caught by the gate that should catch it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from labctl.digest import sha256_hex
from tests.fakes.campaign_repository import HOST, CampaignRepository, make_repository, write_yaml

SERVER = Path(__file__).parents[1] / "fakes" / "lying_server.py"
SHARED = "one two three four five six seven eight nine ten one two three four five six seven eight nine ten "
SUITE = {
    "labctl": 1,
    "kind": "suite",
    "id": "shared",
    "prompts": [{"id": "first", "text": f"{SHARED}one"}, {"id": "second", "text": f"{SHARED}two"}],
}
SOUND_GATES = [
    {"kind": "degenerate_output"},
    {"kind": "long_then_next"},
    {"kind": "rollover", "min_prompt_tokens": 8},
    {"kind": "kv_capacity", "min_tokens": 1024},
    {"kind": "resident_memory", "max_bytes": 1 << 31},
    {"kind": "roofline", "bytes_per_second": "100000000000", "bytes_per_token": "1000000", "source": "far above"},
    {"kind": "postflight"},
]
CAUGHT = [
    ("honest", None, "passed"),
    ("ignore-treatment", "treatment", "failed"),
    ("treat-both", "treatment", "failed"),
    ("cache-prefix", "cold", "failed"),
    ("drop-token", "complete_rows", "failed"),
    ("restart", "identity", "failed"),
    ("print-fallback", "clean_log", "failed"),
    ("rename-counter", "cold", "not_evaluated"),
]


def campaign_of(folder: Path, lie: str) -> CampaignRepository:
    repository = make_repository(folder)
    write_yaml(folder / "campaigns" / "suites" / "two.yaml", SUITE)
    place = folder / "server" / SERVER.name
    place.parent.mkdir()
    shutil.copyfile(SERVER, place)
    manifest = folder / "campaigns" / "models" / "server.sha256"
    manifest.parent.mkdir()
    manifest.write_text(f"{sha256_hex(place.read_bytes())}  {place.name}\n")
    write_yaml(folder / "campaigns" / "hosts" / "test-host.yaml", HOST | {"models": {"server": "server"}})

    def change(document: dict[str, Any]) -> None:
        command = document["service"]["command"]
        document["service"]["command"] = [*command[:2], f"{{model:server}}/{SERVER.name}", "--lie", lie, *command[4:]]
        document["models"] = [{"name": "server", "manifest": "models/server.sha256"}]
        is_of_treatment = lie in ("honest", "ignore-treatment", "treat-both")
        document["schedule"] = {"order": ["A1", "B1"] if is_of_treatment else ["A1"]}
        (log,) = (gate for gate in document["gates"] if gate["kind"] == "clean_log")
        log["deny"] = [{"pattern": "using fallback", "example": "kernel 1 is not there, using fallback"}]
        document["gates"].append({"kind": "accounting"})
        if lie == "honest":
            document["gates"] += SOUND_GATES
        if not is_of_treatment:
            del document["treatment"], document["decision"]
            document["gates"] = [gate for gate in document["gates"] if "exact" not in gate["kind"]]

    repository.edit(change)
    return repository


@pytest.mark.parametrize(("lie", "gate", "result"), CAUGHT)
def test_a_lie_is_caught_by_its_gate(lie: str, gate: str | None, result: str, tmp_path: Path) -> None:
    repository = campaign_of(tmp_path / "lab", lie)
    answer = repository.labctl("rehearse", str(repository.campaign), "--service", "real", "--json")
    assert answer.stdout, answer.stderr
    found = {one["id"]: (one["result"], one["reason"]) for one in json.loads(answer.stdout)["gates"]}
    if gate is None:
        assert {one for one, _ in found.values()} == {"passed"}, found
    else:
        assert found[gate][0] == result, found
