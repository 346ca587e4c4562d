"""`labctl analyze` and `labctl report` on synthetic sealed runs, as a user calls them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.fakes.run_builder import RunBuilder


def labctl(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("labctl")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def sealed(folder: Path, builder: RunBuilder | None = None) -> Path:
    built = builder or RunBuilder(stops=False)
    built.seal(folder)
    return built.root


def test_a_passing_run_is_judged_reported_and_judged_only_once(tmp_path: Path) -> None:
    run, analyses = sealed(tmp_path), tmp_path / "analyses"
    first = labctl("analyze", "sealed-run", run, "--out", analyses)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("verdict: exploratory_pass (quick-test, attempt 1, analyzer frozen)\n")
    (analysis,) = analyses.iterdir()
    assert f"report: {analysis}/data/report.md" in first.stdout
    again = labctl("analyze", "sealed-run", run, "--out", analyses)
    assert (again.returncode, again.stdout) == (3, "")
    assert "[EXISTS]" in again.stderr
    report = labctl("report", run, "--analysis", analysis)
    assert (report.returncode, report.stdout) == (0, (analysis / "data/report.md").read_text())


def test_an_analysis_is_superseded_only_with_a_reason(tmp_path: Path) -> None:
    run, analyses = sealed(tmp_path), tmp_path / "analyses"
    labctl("analyze", "sealed-run", run, "--out", analyses)
    (first,) = analyses.iterdir()
    bare = labctl("analyze", "sealed-run", run, "--out", analyses, "--supersedes", first)
    assert bare.returncode == 2
    reason = ("--supersedes", first, "--reason", "a second look")
    second = labctl("analyze", "sealed-run", run, "--out", analyses, *reason, "--json")
    assert second.returncode == 0
    assert json.loads(second.stdout)["verdict"] == "exploratory_pass"
    assert len(list(analyses.iterdir())) == 2


def test_a_failed_gate_is_exit_6_and_a_spoiled_byte_exit_5(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").rows[0].ids[4] = 499
    run = sealed(tmp_path, builder)
    negative = labctl("analyze", "sealed-run", run, "--out", tmp_path / "analyses")
    assert negative.returncode == 6
    assert "diagnostic_measured_not_exact" in negative.stdout
    log = run / "data/legs/01-A1/server.log"
    log.chmod(0o600)
    log.write_bytes(b"other\n")
    broken = labctl("analyze", "sealed-run", run, "--out", tmp_path / "more")
    assert (broken.returncode, broken.stdout) == (5, "")
    assert "data/legs/01-A1/server.log" in broken.stderr


def test_an_analysis_of_another_run_is_refused(tmp_path: Path) -> None:
    run, other = sealed(tmp_path / "a"), sealed(tmp_path / "b", RunBuilder(stops=False, prompts=3))
    labctl("analyze", "sealed-run", other, "--out", tmp_path / "analyses")
    (analysis,) = (tmp_path / "analyses").iterdir()
    report = labctl("report", run, "--analysis", analysis)
    assert (report.returncode, report.stdout) == (3, "")
    assert "[SEAL_FOREIGN]" in report.stderr


def test_the_current_analysis_is_found_in_the_runs_own_analyses_root(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    run = sealed(tmp_path)
    missing = labctl("report", run, cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "[NOT_FOUND]" in missing.stderr
    assert labctl("analyze", "sealed-run", run, cwd=tmp_path).returncode == 0
    assert (tmp_path / ".labctl/analyses").is_dir()
    shown = labctl("report", run, "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["verdict"] == "exploratory_pass"


def test_a_killed_analysis_leaves_nothing_behind(tmp_path: Path) -> None:
    run, temporary = sealed(tmp_path), tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "labctl", "analyze", "sealed-run", str(run), "--out", str(tmp_path / "analyses")]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}) as parent:
        children = psutil.Process(parent.pid).children
        while not (judges := children()):
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
    for judge in judges:
        judge.kill()
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "analyses").exists()
