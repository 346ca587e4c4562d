"""Run the fault suite at full counts and write docs/fault-results.md: `python scripts/faults.py [SECTION ...]`.

Without a section all of them run. What each section found is kept in .labctl/faults/, so that the document can be
written again after one section was repeated; each says when and on which commit it ran.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

from tests.faults.crash.kills import kill_campaigns  # noqa: E402 (the tests are importable only from the top)

FOUND = TOP / ".labctl" / "faults"
DOCUMENT = TOP / "docs" / "fault-results.md"
KILLS = 200
SEED = 7
Rows = list[list[str]]


def kills(scratch: Path) -> Rows:
    """SIGKILL at random times of a running campaign: state left behind, times."""
    states = kill_campaigns(scratch, KILLS, SEED)
    return [["state after the kill", "kills"], *([name, str(count)] for name, count in sorted(states.items()))]


SECTIONS: dict[str, Callable[[Path], Rows]] = {"kills": kills}


def run_section(name: str) -> None:
    """Run one section and keep what it found."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="labctl-faults-") as scratch:
        rows = SECTIONS[name](Path(scratch))
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=TOP, capture_output=True, check=True)
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit.stdout.decode().strip(),
        "seconds": round(time.monotonic() - started),
        "rows": rows,
    }
    FOUND.mkdir(parents=True, exist_ok=True)
    (FOUND / f"{name}.json").write_text(json.dumps(found, indent=1))
    print(f"{name}: {found['seconds']} s")


def write_document() -> None:
    """Write the document from what every section found last."""
    parts = ["# What the fault suite found\n\nWritten by `make faults`; each table says when and on which commit.\n"]
    for name, section in SECTIONS.items():
        path = FOUND / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text())
            parts.append(
                f"## {name.replace('_', ' ')}\n\n{section.__doc__}\n\n{_stamp(found)}\n\n{_table(found['rows'])}"
            )
    DOCUMENT.write_text("\n".join(parts))


def _stamp(found: dict[str, object]) -> str:
    return f"{found['date']}, commit {found['commit']}, {found['seconds']} s."


def _table(rows: Rows) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(SECTIONS):
        run_section(chosen)
    write_document()
