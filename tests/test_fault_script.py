"""The script of the fault suite takes only what it knows, and writes nothing otherwise."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
SCRIPT = TOP / "scripts" / "faults.py"
DOCUMENT = TOP / "docs" / "fault-results.md"


def _ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], cwd=TOP, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [("nothing",), ("document", "rases"), ("--nothing",)])
def test_what_is_no_section_is_a_usage_error_and_leaves_the_document(arguments: tuple[str, ...]) -> None:
    before = DOCUMENT.read_bytes(), DOCUMENT.stat().st_mtime_ns
    done = _ran(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert arguments[-1] in done.stderr.splitlines()[-1]
    assert (DOCUMENT.read_bytes(), DOCUMENT.stat().st_mtime_ns) == before


def test_help_names_every_section_and_leaves_the_document() -> None:
    before = DOCUMENT.read_bytes(), DOCUMENT.stat().st_mtime_ns
    done = _ran("--help")
    assert done.returncode == 0
    assert "mutation_gate" in done.stdout
    assert "document" in done.stdout
    assert (DOCUMENT.read_bytes(), DOCUMENT.stat().st_mtime_ns) == before
