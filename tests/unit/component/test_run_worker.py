"""The worker process: sealed before torch, recorded however it ends."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labctl.records.component import WorkerCompleted, WorkerFailed
from labctl.records.microcase import MustRaiseRecord
from tests.fakes.component_worker import WorkerRun, Zygote, run_worker, work_of
from tests.fakes.worker_lies import CAMPAIGN, HONEST

PROGRAM = Path(__file__).parents[3] / "src" / "labctl" / "component" / "run_worker.py"
DECLARED = (
    "Worker(weights=weights, inputs=inputs, caches=caches, slots=Slots('slots', dim=1), control=Fresh, candidate="
)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> WorkerRun:
    return run_worker(tmp_path_factory.mktemp("honest"), HONEST, work_of(CAMPAIGN))


def run_with(zygote: Zygote, folder: Path, more: str, work: dict[str, Any] | None = None) -> WorkerRun:
    worker = folder / "spoiled.py"
    worker.write_text(HONEST.read_text(encoding="utf-8") + more, encoding="utf-8")
    return zygote.run(folder, worker, work or work_of(CAMPAIGN))


def failure(run: WorkerRun) -> WorkerFailed:
    assert run.exit_status == 4
    assert not run.paused
    ending = run.component.ending
    assert isinstance(ending, WorkerFailed)
    assert ending.exception in run.log
    return ending


def test_the_seal_is_written_before_torch_is_there(honest: WorkerRun) -> None:
    seal = honest.pre_import
    assert "torch" not in seal.modules
    assert not [path for path in seal.mapped_files if "libtorch" in path]
    assert "libtorch" in honest.maps
    assert seal.mono_ns <= honest.component.started_mono_ns


def test_the_seal_names_every_exported_file_by_its_digest(honest: WorkerRun) -> None:
    seal = honest.pre_import
    component = {f"component-{path.name}" for path in PROGRAM.parent.glob("*.py")}
    assert set(seal.code_sha256) == {*component, "worker.py"}
    assert seal.code_sha256["worker.py"] == hashlib.sha256(HONEST.read_bytes()).hexdigest()
    assert seal.code_sha256["component-run_worker.py"] == hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
    assert seal.executable_sha256 == hashlib.sha256(Path(seal.executable).read_bytes()).hexdigest()


def test_the_seal_tells_the_process_as_it_was_started(honest: WorkerRun) -> None:
    seal = honest.pre_import
    assert seal.argv[1:4] == ("-I", "-B", "-u")
    assert seal.environment == {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"} | {
        name: value for name, value in seal.environment.items() if name == "LC_CTYPE"
    }
    assert seal.flags["isolated"] == 1


def test_the_records_name_each_other(honest: WorkerRun) -> None:
    record = honest.component
    digests = [hashlib.sha256((honest.leg / name).read_bytes()).hexdigest() for name in ("order.json", "rows.jsonl")]
    assert [record.order_sha256, record.rows_sha256] == digests
    assert record.pre_import_sha256 == hashlib.sha256((honest.leg / "pre-import.json").read_bytes()).hexdigest()
    assert (record.rows, len(honest.rows)) == (8, 8)
    assert record.ending == WorkerCompleted(kind="completed")


def test_the_worker_waits_to_be_looked_at_with_all_buffers_alive(honest: WorkerRun) -> None:
    assert honest.paused
    assert honest.exit_status == 0


def test_rows_go_by_arm_case_and_repeat(honest: WorkerRun) -> None:
    order = [(row.row, row.arm, row.case, row.repeat) for row in honest.rows]
    assert order[:4] == [(1, "plain", "w1", 1), (2, "plain", "w1", 2), (3, "plain", "w3", 1), (4, "plain", "w3", 2)]
    assert order[4] == (5, "shifted", "w1", 1)


def test_inputs_are_the_same_tensors_for_both_sides_and_fresh_in_each_row(honest: WorkerRun) -> None:
    digests = [row.inputs[0].tensor.sha256 for row in honest.rows]
    assert len(set(digests)) == len(digests)
    assert all(row.inputs_after == tuple(drawn.tensor.sha256 for drawn in row.inputs) for row in honest.rows)


def test_a_worker_file_that_cannot_be_loaded_leaves_a_record(tmp_path: Path, zygote: Zygote) -> None:
    ending = failure(run_with(zygote, tmp_path, "import a_module_that_is_nowhere\n"))
    assert (ending.stage, ending.row, ending.exception) == ("import", 0, "ModuleNotFoundError")


def test_a_worker_file_without_a_declaration_leaves_a_record(tmp_path: Path, zygote: Zygote) -> None:
    assert "declares no" in failure(run_with(zygote, tmp_path, "worker = None\n")).message


def test_a_candidate_that_dies_in_a_row_leaves_the_rows_before_it(tmp_path: Path, zygote: Zygote) -> None:
    spoiled = f"""
class Dying(Kept):
    def __call__(self, call):
        super().__call__(call)
        if call.sizes["width"] == 3:
            raise MemoryError("no more")
worker = {DECLARED}Dying)
"""
    run = run_with(zygote, tmp_path, spoiled)
    ending = failure(run)
    assert (ending.stage, ending.row, ending.exception, ending.message) == ("row", 2, "MemoryError", "no more")
    assert len(run.rows) == run.component.rows == 2
    assert any("worker.py" in line for line in ending.traceback)


def test_leaving_the_process_from_the_worker_file_is_a_failure(tmp_path: Path, zygote: Zygote) -> None:
    assert failure(run_with(zygote, tmp_path, "raise SystemExit(0)\n")).exception == "SystemExit"


@pytest.mark.parametrize(
    ("drop", "message"), [("doubled", "'doubled' where the declaration has"), ("scaled", "'scaled'")]
)
def test_a_boundary_that_is_not_declared_is_refused(tmp_path: Path, zygote: Zygote, drop: str, message: str) -> None:
    work = work_of(CAMPAIGN)
    work["boundaries"] = [boundary for boundary in work["boundaries"] if boundary["name"] != drop]
    ending = failure(run_with(zygote, tmp_path, "", work))
    assert message in ending.message


def test_a_boundary_that_is_left_out_is_refused(tmp_path: Path, zygote: Zygote) -> None:
    work = work_of(CAMPAIGN)
    work["boundaries"].append({"name": "never", "of": "pair", "select": None})
    assert failure(run_with(zygote, tmp_path, "", work)).message == "the control showed 3 of 4 boundaries"


def test_a_candidate_that_does_not_refuse_is_recorded_and_judged_later(tmp_path: Path, zygote: Zygote) -> None:
    spoiled = f"""
class Willing(Kept):
    def __call__(self, call):
        import torch
        honest, torch.jit.is_tracing = torch.jit.is_tracing, lambda: False
        super().__call__(call)
        torch.jit.is_tracing = honest
worker = {DECLARED}Willing)
"""
    run = run_with(zygote, tmp_path, spoiled)
    assert run.exit_status == 0, run.log
    refused = next(one for one in run.component.microcases if isinstance(one, MustRaiseRecord))
    assert (refused.exception, refused.message) == (None, None)
    assert refused.state_before != refused.state_after


def test_warnings_stand_in_the_log_and_in_the_record(tmp_path: Path, zygote: Zygote) -> None:
    run = run_with(zygote, tmp_path, "import warnings\nwarnings.warn('a fallback', RuntimeWarning)\n")
    assert [(one.category, one.message) for one in run.component.warnings] == [("RuntimeWarning", "a fallback")]
    assert "RuntimeWarning: a fallback" in run.log


def test_no_earlier_record_is_written_over(tmp_path: Path) -> None:
    work = work_of(CAMPAIGN)
    run_worker(tmp_path, HONEST, work)
    before = (tmp_path / "leg" / "pre-import.json").read_bytes()
    again = subprocess.run(
        [
            sys.executable,
            "-I",
            "-B",
            str(tmp_path / "code/labctl/component/run_worker.py"),
            str(tmp_path / "leg/order.json"),
        ],
        capture_output=True,
        check=False,
        text=True,
    )
    assert again.returncode == 1
    assert "FileExistsError" in again.stderr
    assert (tmp_path / "leg" / "pre-import.json").read_bytes() == before
