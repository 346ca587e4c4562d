"""A run that is killed or stopped: the packet is spent, nothing is left running, and the run can be sealed."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.fakes.campaign_repository import CampaignRepository, make_repository
from tests.faults.crash.kills import wait_until_nothing_is_left


@pytest.fixture
def repository(tmp_path: Path) -> CampaignRepository:
    made = make_repository(tmp_path / "campaign")
    made.freeze()
    return made


def _wait_for_marker(repository: CampaignRepository, process: "subprocess.Popen[str]") -> None:
    markers = repository.authorization / "markers"
    while not (markers.is_dir() and any(markers.iterdir())):
        assert process.poll() is None
        time.sleep(0.01)


@pytest.mark.parametrize("after_s", [0.0, 0.3, 1.0, 2.0, 3.5])
def test_a_controller_killed_after_the_marker_leaves_a_spent_packet_and_no_process(
    repository: CampaignRepository, after_s: float
) -> None:
    process = repository.start("consume-and-run", str(repository.campaign))
    _wait_for_marker(repository, process)
    time.sleep(after_s)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    wait_until_nothing_is_left(repository)
    (status,) = repository.status()
    assert status["state"] in {"spent_empty", "spent_unsealed"}
    assert status["why"]
    again = repository.labctl("consume-and-run", status["packet"])
    assert (again.returncode, "[CONSUMED]" in again.stderr) == (3, True)
    _seal_as_aborted(repository, status)


def _seal_as_aborted(repository: CampaignRepository, status: dict[str, str]) -> None:
    marker = json.loads((repository.authorization / "markers" / f"{status['packet']}.json").read_bytes())
    run = repository.root / ".labctl" / "runs" / marker["run_dir"]
    sealed = repository.labctl("seal", "abort", str(run))
    assert sealed.returncode == 0, sealed.stderr
    assert repository.labctl("seal", "verify", str(run)).returncode == 0
    (after,) = repository.status()
    assert after["state"] == "sealed_aborted"
    assert list((repository.root / ".labctl" / "scratch").iterdir()) == []
    judged = repository.labctl("analyze", "sealed-run", str(run))
    assert judged.returncode == 4, judged.stderr


def test_a_controller_killed_after_the_last_leg_leaves_nothing_once_the_run_is_sealed(
    repository: CampaignRepository,
) -> None:
    process = repository.start("consume-and-run", str(repository.campaign))
    while not list(repository.root.glob(".labctl/runs/*/data/legs/04-A2/leg-manifest-sha256.txt")):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.communicate()
    wait_until_nothing_is_left(repository)
    assert len(list((repository.root / ".labctl" / "scratch").iterdir())) == 1
    (status,) = repository.status()
    _seal_as_aborted(repository, status)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_in_order_and_seals_it_as_aborted(
    repository: CampaignRepository, number: signal.Signals
) -> None:
    process = repository.start("consume-and-run", str(repository.campaign))
    _wait_for_marker(repository, process)
    time.sleep(1.5)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 4, errors
    assert "infrastructure_abort_after_measurement_start" in output
    (status,) = repository.status()
    assert (status["state"], status["why"].split(":")[0]) == ("sealed_aborted", "operator"), status["why"]
    wait_until_nothing_is_left(repository)


def test_a_signal_before_the_marker_spends_nothing(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "campaign")
    host = repository.root / "campaigns" / "hosts" / "test-host.yaml"
    host.write_text(host.read_text().replace("window_s: 0", "window_s: 60"))
    repository.commit()
    repository.freeze()
    process = repository.start("consume-and-run", str(repository.campaign))
    assert process.stderr is not None
    while "looking at the host" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    (status,) = repository.status()
    assert status["state"] == "unconsumed"


def test_a_server_that_cannot_start_is_a_sealed_failure_with_its_reason(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "campaign")

    def break_command(document: dict[str, object]) -> None:
        service = document["service"]
        assert isinstance(service, dict)
        service["command"] = [*service["command"], "--no-such-option"]

    repository.edit(break_command)
    repository.freeze()
    answer = repository.labctl("consume-and-run", str(repository.campaign))
    assert answer.returncode == 4
    (status,) = repository.status()
    assert status["state"] == "sealed_aborted"
    assert "no-such-option" in status["why"]
    assert status["why"].count("expected") == 1, status["why"]
    (log,) = (word for word in status["why"].split() if word.endswith("/server.log"))
    assert "no-such-option" in (Path(status["run"]) / log).read_text()
    gates = {
        gate["id"]: gate for gate in json.loads(repository.labctl("report", status["run"], "--json").stdout)["gates"]
    }
    exactness = gates["exact_tokens"]
    assert (exactness["result"], exactness["reason"]) == ("not_evaluated", "no row was measured")
    assert repository.labctl("seal", "verify", status["run"]).returncode == 0


def test_a_reader_that_goes_away_does_not_end_a_run_that_cannot_be_repeated(repository: CampaignRepository) -> None:
    process = repository.start("consume-and-run", str(repository.campaign))
    assert process.stderr is not None
    assert process.stdout is not None
    process.stderr.readline()
    process.stderr.close()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    (status,) = repository.status()
    assert status["state"] == "sealed_completed"


def test_a_file_that_was_edited_after_freezing_is_not_run_unseen(repository: CampaignRepository) -> None:
    repository.edit(lambda document: document.update(question="Another question?"))
    answer = repository.labctl("consume-and-run", str(repository.campaign))
    assert (answer.returncode, "[FILE_DRIFT]" in answer.stderr) == (3, True)
    (status,) = repository.status()
    assert status["state"] == "unconsumed"
