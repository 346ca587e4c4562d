"""The page about workers shows the worker that the tests run, and names what is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.component_worker import run_worker, work_of
from tests.fakes.worker_lies import CAMPAIGN, HONEST

TOP = Path(__file__).parents[3]
PAGE = (TOP / "docs" / "component-workers.md").read_text(encoding="utf-8")
COMPONENT = TOP / "src" / "labctl" / "component"


def test_the_page_shows_the_worker_that_tests_run() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example == HONEST.read_text(encoding="utf-8")


def test_files_that_the_page_names_are_there() -> None:
    run_files = {"pre-import.json", "rows.jsonl", "component.json"}
    assert run_files <= set(re.findall(r"`([a-z-]+\.jsonl?)`", PAGE))
    assert (TOP / "tests" / "fakes" / "worker_lies.py").exists()
    assert (COMPONENT / "run_probe.py").exists()


@pytest.mark.parametrize(
    "name", ["seal", "closing", "order", "stream", "warning_log", "writing", "process_facts", "probe"]
)
def test_what_runs_before_torch_imports_the_standard_library_alone(name: str) -> None:
    path = f"import sys; sys.path.insert(0, {str(TOP / 'src')!r}); before = set(sys.modules); "
    program = f"import labctl.component.{name}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", path + program], capture_output=True, text=True, check=True
    )
    tops = {module.partition(".")[0] for module in done.stdout.split()}
    assert tops <= {"labctl", *sys.stdlib_module_names}
    own = {module for module in done.stdout.split() if module.startswith("labctl.")}
    assert all(module.startswith("labctl.component") for module in own)


def test_an_interpreter_without_torch_leaves_a_record(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    run = run_worker(tmp_path, HONEST, work_of(CAMPAIGN), interpreter=bare / "bin" / "python")
    assert run.exit_status == 4
    record = run.component
    assert record.ending.kind == "failed"
    assert (record.ending.stage, record.ending.exception) == ("import", "ModuleNotFoundError")
    assert (record.versions, record.rows, run.rows) == (None, 0, ())
