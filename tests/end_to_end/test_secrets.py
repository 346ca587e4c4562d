"""A secret of the environment that gets into a run: the run is sealed as aborted, and no file repeats the value."""

import json
import time
from pathlib import Path

import pytest

from labctl.seal.verify import open_sealed_run
from tests.fakes.campaign_repository import make_repository

IN_EVERY_RESPONSE = "text/event-stream"


def test_a_secret_in_a_file_of_the_run_aborts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "lab")
    repository.edit(lambda document: document.update(schedule={"order": ["A1", "B1"]}))
    packet = repository.freeze()
    monkeypatch.setenv("DEPLOY_TOKEN", IN_EVERY_RESPONSE)
    done = repository.labctl("consume-and-run", packet)
    (run,) = (repository.root / ".labctl/runs").glob("small-*")
    outcome = json.loads((run / "data/outcome.json").read_text())
    assert (done.returncode, outcome["outcome"], outcome["cause"]) == (4, "aborted", "secret_found"), done.stderr
    assert [line for line in outcome["detail"] if line.startswith("data/legs/01-A1/wire/01.bin: ")]
    assert outcome["legs_closed"] == ["A1", "B1"]
    assert open_sealed_run(run).statement.predicate.outcome.cause == "secret_found"
    said = [done.stdout, done.stderr, *(path.read_text() for path in run.glob("data/*.json*"))]
    assert not [text for text in said if IN_EVERY_RESPONSE in text]


def test_a_secret_in_the_packet_is_refused_before_the_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "lab")
    packet = repository.freeze()
    monkeypatch.setenv("DEPLOY_TOKEN", "Does the main job run?")
    done = repository.labctl("consume-and-run", packet)
    assert (done.returncode, done.stderr.count("[SECRET_FOUND]") > 0) == (3, True)
    assert not (repository.authorization / "markers").exists()


def test_a_secret_in_a_killed_run_is_named_when_it_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "lab")
    running = repository.start("consume-and-run", repository.freeze())
    runs = repository.root / ".labctl/runs"
    while not list(runs.glob("*/data/legs/01-A1/LEG_STARTED.json")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    running.kill()
    running.communicate()
    (run,) = runs.glob("small-*")
    deadline_s = time.monotonic() + 30
    while not (run / "data/legs/01-A1/leg-manifest-sha256.txt").exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    monkeypatch.setenv("DEPLOY_TOKEN", "labctl.servers.reference")
    while (done := repository.labctl("seal", "abort", str(run))).returncode == 3 and time.monotonic() < deadline_s:
        time.sleep(0.2)  # the leg writes its manifest a moment before its processes have ended
    assert done.returncode == 0, done.stderr
    detail = json.loads((run / "data/outcome.json").read_text())["detail"][0]
    assert "data/legs/01-A1/order.json: expected no value of a secret variable" in detail
    assert "labctl.servers.reference" not in detail
