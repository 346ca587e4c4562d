import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "runs.example"


def oracle(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return labctl("oracle", *arguments)


def labctl(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labctl.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ("oracle", "make", EXAMPLES / "quickstart"),
        ("oracle", "import", "none", "--suite", "none", "--api", "chat", "--max-tokens", 1),
        ("power", "pool", EXAMPLES / "quickstart-calibration"),
    ],
)
def test_a_new_file_goes_into_a_folder_that_exists(tmp_path: Path, command: tuple[object, ...]) -> None:
    out = tmp_path / "missing" / "oracle.json"
    done = labctl(*map(str, command), "--out", out)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"--out {out}: expected a folder that exists")
    assert "[NOT_FOUND]" in done.stderr


def test_a_sealed_run_becomes_a_teacher_once(tmp_path: Path) -> None:
    out = tmp_path / "oracle.json"
    assert oracle("make", EXAMPLES / "quickstart", "--out", out).returncode == 0
    before = out.read_bytes()
    again = oracle("make", EXAMPLES / "quickstart", "--out", out, "--holds", "text")
    assert (again.returncode, "[EXISTS]" in again.stderr) == (3, True)
    assert out.read_bytes() == before
