"""Campaigns on cards as a user runs them, with real workers: what a leg's failure leaves, and what it never leaves."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from labctl.records.any_order import read_order
from labctl.records.card_order import ComponentOrder
from labctl.records.devices import Discovery
from labctl.records.worker import RankExit, WorkerPostflight, WorkerProcess
from tests.fakes.card_repository import CardRepository, make_card_repository, make_probe_repository


def run(repository: CardRepository) -> dict[str, Any]:
    """Freeze and run, and give what `labctl status` then says."""
    repository.freeze()
    repository.labctl("consume-and-run", str(repository.campaign))
    (status,) = repository.status()
    return status


def legs(repository: CardRepository) -> list[str]:
    return sorted(folder.name for folder in (repository.only_run() / "data" / "legs").iterdir())


def record(repository: CardRepository, name: str) -> bytes:
    return (repository.only_run() / "data" / name).read_bytes()


def still_running(repository: CardRepository) -> list[str]:
    """Processes whose command line or folder speaks of this repository."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes() + os.fsencode((folder / "cwd").readlink())
        except OSError:
            continue
        if os.fsencode(repository.root) in command and int(folder.name) != os.getpid():
            found.append(folder.name)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> CardRepository:
    repository = make_card_repository(tmp_path_factory.mktemp("cards"), cards=2)
    run(repository)
    return repository


def test_each_card_has_a_leg_that_saw_it_alone(whole: CardRepository) -> None:
    assert whole.status()[0]["state"] == "sealed_completed"
    assert legs(whole) == ["01-card0", "02-card1"]
    everything = Discovery.from_json(record(whole, "host/devices.json"), "devices")
    assert everything.filtered_by == {}
    for index, leg in enumerate(legs(whole)):
        order = read_order(record(whole, f"legs/{leg}/order.json"), leg)
        assert isinstance(order, ComponentOrder)
        filtered = Discovery.from_json(record(whole, f"legs/{leg}/discovery.json"), leg)
        assert order.card == everything.cards[index]
        assert list(order.card.same_card_conflicts(filtered.cards[0])) == []
        assert len(filtered.cards) == 1


def test_the_leg_looks_at_the_worker_from_outside(whole: CardRepository) -> None:
    order = read_order(record(whole, "legs/02-card1/order.json"), "order")
    process = WorkerProcess.from_json(record(whole, "legs/02-card1/process.json"), "process")
    assert process.root is not None
    assert process.root.argv == order.argv
    assert process.root.environment == order.environment
    assert process.root.environment_other == ()
    assert (process.pauses, process.rows_seen) == (1, 8)
    maps = record(whole, "legs/02-card1/maps.txt")
    assert b"libtorch" in maps
    postflight = WorkerPostflight.from_json(record(whole, "legs/02-card1/postflight.json"), "postflight")
    assert (postflight.exit_status, postflight.killed, postflight.processes_left) == (0, (), ())
    assert postflight.card is not None
    assert postflight.card.problems == ()


def test_what_ran_is_what_the_packet_pins(whole: CardRepository) -> None:
    order = read_order(record(whole, "legs/01-card0/order.json"), "order")
    assert isinstance(order, ComponentOrder)
    pre_import = json.loads(record(whole, "legs/01-card0/pre-import.json"))
    packet = json.loads(record(whole, "packet/packet.json"))
    pinned = {file["role"]: file["sha256"] for file in packet["files"]}
    assert pre_import["code_sha256"] == order.inputs
    assert order.inputs.items() <= pinned.items()
    assert packet["engine_sha256"] is None
    assert not (whole.only_run() / "data" / "packet" / "engine.json").exists()


def test_what_is_made_from_servers_is_not_made_from_cards(whole: CardRepository, tmp_path: Path) -> None:
    answer = whole.labctl("oracle", "make", str(whole.only_run()), "--out", str(tmp_path / "oracle.json"))
    assert answer.returncode == 3
    assert "expected a run of servers, got a run of kind component" in answer.stderr


HANG = "import subprocess, time\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\ntime.sleep(600)"
FAULTS = {
    "killed": (1, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL", "WORKER_FAILED"),
    "hung": (0, HANG, "got none", "WORKER_TIMEOUT"),
    "out of memory": (0, "hoard = bytearray(4 << 30)", "MemoryError", "WORKER_FAILED"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_leg_that_fails_is_sealed_and_named_and_later_cards_are_not_run(tmp_path: Path, name: str) -> None:
    card, code, words, problem = FAULTS[name]
    repository = make_card_repository(tmp_path, cards=card + 2)
    repository.say(worker={"timeout_s": 8 if name == "hung" else 60, "memory_mib": 2048})
    repository.spoil(card, code)
    assert run(repository)["state"] == "sealed_aborted"
    outcome = json.loads(record(repository, "outcome.json"))
    told = outcome["detail"][0]
    assert f"leg {card + 1:02d}-card{card}: the worker on card cpu:" in told
    assert words in told
    assert f"[{problem}]" in told
    assert outcome["legs_closed"] == [f"card{earlier}" for earlier in range(card)]
    assert legs(repository) == [f"{index + 1:02d}-card{index}" for index in range(card + 1)]
    assert still_running(repository) == []
    assert repository.labctl("seal", "verify", str(repository.only_run())).returncode == 0


def test_a_leg_that_is_killed_is_sealed_and_named_with_its_card(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    repository.spoil(0, "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)")
    repository.freeze()
    answer = repository.labctl("consume-and-run", str(repository.campaign))
    assert answer.returncode == 4
    assert "a leg did not complete: in card0; legs never started: card1" in answer.stdout
    assert "[LEG_CRASHED]" in answer.stdout
    assert "card0 (cpu:0" in answer.stdout
    assert legs(repository) == ["01-card0"]
    assert still_running(repository) == []


def test_a_worker_that_is_cut_off_by_its_controllers_end_leaves_nothing(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    repository.spoil(card=1, code="import time\ntime.sleep(600)")
    repository.freeze()
    controller = repository.start("consume-and-run", str(repository.campaign))
    for line in iter(controller.stderr.readline, "") if controller.stderr else ():
        if "leg card1" in line:
            break
    controller.kill()
    controller.communicate(timeout=60)
    for _ in range(600):
        if not still_running(repository):
            break
        time.sleep(0.05)
    assert still_running(repository) == []
    assert repository.status()[0]["state"] == "spent_unsealed"
    assert repository.labctl("seal", "abort", str(repository.only_run())).returncode == 0
    judged = repository.labctl("analyze", "sealed-run", str(repository.only_run()))
    assert judged.returncode == 4, judged.stderr
    assert "its controller was killed" in judged.stdout


def test_cards_hidden_from_the_rehearsal_are_found_missing_before_any_packet_is_spent(tmp_path: Path) -> None:
    repository = make_card_repository(tmp_path, cards=2)
    before = os.sched_getaffinity(0)
    if len(before) == 1:
        pytest.skip("one CPU cannot be hidden from itself")
    os.sched_setaffinity(0, {min(before)})
    try:
        answer = repository.labctl("rehearse", str(repository.campaign))
    finally:
        os.sched_setaffinity(0, before)
    assert answer.returncode == 3
    assert "sched_affinity" in answer.stderr
    assert "[WRONG_CARD]" in answer.stderr
    assert [one["state"] for one in repository.status()] == ["unconsumed"]


def test_a_probe_runs_every_rank_on_its_card_and_ends_them_all(tmp_path: Path) -> None:
    repository = make_probe_repository(tmp_path, ranks=2)
    assert run(repository)["state"] == "sealed_completed"
    exits = [
        RankExit.from_json(record(repository, f"legs/01-probe/rank-{rank}.exit.json"), "exit") for rank in range(2)
    ]
    assert [one.exit_status for one in exits] == [0, 0]
    assert [one.timed_out for one in exits] == [False, False]
    assert all(record(repository, f"legs/01-probe/rank-{rank}.jsonl").count(b"\n") == 8 for rank in range(2))
    assert still_running(repository) == []
