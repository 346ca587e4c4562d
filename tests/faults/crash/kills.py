"""Kill the controller of a running campaign at random moments, and look at what is left after each.

`kill_campaigns(folder, kills, seed)` makes a fresh campaign repository for every kill, starts `consume-and-run`, sends
SIGKILL after a random time, and demands: no process of it is left, the packet is in a legal state, a spent packet is
refused, it was consumed at most once, and an unsealed run can be sealed as aborted. Anything else is an
`AssertionError`. A campaign that ends before its kill is not counted and tried again with another moment.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.fakes.campaign_repository import CampaignRepository, make_repository

LEGAL = {"unconsumed", "spent_empty", "spent_unsealed", "sealed_completed", "sealed_aborted"}
UNFINISHED = {"spent_empty", "spent_unsealed"}
GONE_WITHIN_S = 30.0


def kill_campaigns(folder: Path, kills: int, seed: int) -> Counter[str]:
    """How many packets each kill left in which state."""
    moments = random.Random(seed)  # noqa: S311 (moments, not secrets)
    states: Counter[str] = Counter()
    longest_s = 5.0
    number = 0
    while states.total() < kills:
        number += 1
        place = folder / f"{number:03d}"
        repository = _two_starts(place)
        whole_s = _kill_after(repository, moments.uniform(0, longest_s))
        if whole_s is None:
            states[_require_legal(repository)] += 1
        else:
            longest_s = whole_s
        shutil.rmtree(place)
    return states


def left_running(repository: CampaignRepository) -> list[str]:
    """Command lines of processes that belong to a repository."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.pid != os.getpid() and any(str(repository.root) in word for word in words):
            found.append(" ".join(process.cmdline()))
    return found


def wait_until_nothing_is_left(repository: CampaignRepository) -> None:
    """Wait for the last process of a repository; an AssertionError names those that stay."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := left_running(repository):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _two_starts(place: Path) -> CampaignRepository:
    repository = make_repository(place)

    def shorten(document: dict[str, object]) -> None:
        document["schedule"] = {"order": ["A1", "B1"]}

    repository.edit(shorten)
    repository.freeze()
    return repository


def _kill_after(repository: CampaignRepository, after_s: float) -> float | None:
    """Start the campaign and kill it; the seconds that it took where it ended by itself before."""
    started = time.monotonic()
    process = repository.start("consume-and-run", str(repository.campaign))
    try:
        process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    wait_until_nothing_is_left(repository)
    return None if process.returncode == -signal.SIGKILL else time.monotonic() - started


def _require_legal(repository: CampaignRepository) -> str:
    (status,) = repository.status()
    state = str(status["state"])
    assert state in LEGAL, status
    markers = repository.authorization / "markers"
    has_marker = markers.is_dir() and any(markers.iterdir())
    assert has_marker == (state != "unconsumed"), status
    if has_marker:
        again = repository.labctl("consume-and-run", str(status["packet"]))
        assert (again.returncode, "[CONSUMED" in again.stderr) == (3, True), again.stderr
    assert _times_consumed(repository) <= 1
    runs = repository.root / ".labctl" / "runs"
    assert len(list(runs.iterdir()) if runs.is_dir() else []) <= int(has_marker)
    if state in UNFINISHED:
        _seal_as_aborted(repository, str(status["packet"]))
    return state


def _times_consumed(repository: CampaignRepository) -> int:
    ledger = repository.authorization / "ledger" / "consumed.jsonl"
    lines = ledger.read_bytes().splitlines() if ledger.exists() else []
    return sum(json.loads(line)["event"] == "consumed" for line in lines)


def _seal_as_aborted(repository: CampaignRepository, packet: str) -> None:
    """A whole marker names the run; of a marker that was cut short there is no run to seal."""
    data = (repository.authorization / "markers" / f"{packet}.json").read_bytes()
    if not data.endswith(b"\n"):
        return
    marker: dict[str, Any] = json.loads(data)
    run = repository.root / ".labctl" / "runs" / marker["run_dir"]
    sealed = repository.labctl("seal", "abort", str(run))
    assert sealed.returncode == 0, sealed.stderr
    assert repository.labctl("seal", "verify", str(run)).returncode == 0
    (after,) = repository.status()
    assert after["state"] == "sealed_aborted", after
