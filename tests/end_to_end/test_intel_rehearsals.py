"""Harnesses that misread Intel cards, rehearsed where `xpu-smi` is a program that behaves as documented.

No such card is here, so no worker gets further than torch's answer that there is none; what is shown is that the fault
of the harness comes first, in a rehearsal, and that the real packet is still unspent.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.card_repository import CardRepository, make_card_repository
from tests.fakes.xpu_smi import four_cards, install

CARD = 1
BINDS = """
import json as _json, pathlib as _pathlib, sys as _sys
_order = _json.loads(_pathlib.Path(_sys.argv[1]).read_bytes())
(_seen,) = _json.loads((_pathlib.Path(_sys.argv[1]).parent / "discovery.json").read_bytes())["cards"]
if _seen[{field!r}] != _order["card"][{field!r}]:
    raise RuntimeError(f"filtered card mapping drift: {{_seen[{field!r}]}}, not {{_order['card'][{field!r}]}}")
print("the mapping holds")
"""


def intel_repository(folder: Path, program: Path) -> CardRepository:
    """A campaign on the second of four Intel cards, frozen by its UUID."""
    repository = make_card_repository(folder / "lab", cards=1)
    host = repository.root / "campaigns" / "hosts" / "test-host.yaml"
    devices = {"devices": {"xpu_smi": str(program), "timeout_s": 20}}
    host.write_text(yaml.safe_dump(yaml.safe_load(host.read_text()) | devices))
    repository.say(cards={"vendor": "intel", "count": 1, "identities": [four_cards().cards[CARD].uuid]})
    return repository


def rehearsed(repository: CardRepository) -> tuple[int, dict[str, Any]]:
    """Exit status and verdict of a rehearsal beside a frozen packet, which must stay unspent."""
    repository.freeze()
    done = repository.labctl("rehearse", str(repository.campaign), "--json")
    states = {one["kind"]: one["state"] for one in repository.status()}
    assert states == {"real": "unconsumed", "rehearsal": "sealed_aborted"}, done.stderr
    return done.returncode, json.loads(done.stdout)


def worker_log(repository: CardRepository) -> str:
    (run,) = (repository.root / ".labctl").rglob("legs/01-card0/worker.log")
    return run.read_text()


@pytest.mark.parametrize(("field", "is_sound"), [("index", False), ("identity", True)])
def test_a_worker_that_binds_by_number_fails_in_rehearsal_where_one_by_uuid_does_not(
    field: str, is_sound: bool, tmp_path: Path
) -> None:
    repository = intel_repository(tmp_path, install(tmp_path / "tool", four_cards()))
    repository.worker.write_text(repository.worker.read_text() + BINDS.format(field=field))
    repository.commit()
    status, verdict = rehearsed(repository)
    assert (status, verdict["verdict"]) == (4, "infrastructure_abort_after_measurement_start")
    told = "\n".join(verdict["because"])
    assert four_cards().cards[CARD].uuid in told
    assert ("filtered card mapping drift: 0, not 1" in told) is not is_sound
    assert ("the mapping holds" in worker_log(repository)) is is_sound
    assert "server" not in told


def test_a_card_that_no_mask_hides_fails_in_rehearsal(tmp_path: Path) -> None:
    program = tmp_path / "blind" / "xpu-smi"
    program.parent.mkdir()
    real = install(tmp_path / "tool", four_cards())
    program.write_text(f'#!/bin/sh\nunset ZE_AFFINITY_MASK ONEAPI_DEVICE_SELECTOR\nexec {real} "$@"\n')
    program.chmod(0o755)
    status, verdict = rehearsed(intel_repository(tmp_path, program))
    assert status == 4
    assert any("[WRONG_CARD]" in line for line in verdict["because"]), verdict["because"]
    assert [one["result"] for one in verdict["cards"]] == ["not_run"]
