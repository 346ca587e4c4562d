"""Assert what the examples on cards came to: read from the sealed runs and analyses, not from what was printed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WANTED = {"context-kv-cpu": "exact_4_card_component_pass", "probe-cpu": "pass"}
ASSERTIONS = "1536"
LABCTL = str(Path(".venv/bin/labctl"))


def main() -> int:
    """Find the last run of each, verify its seal with two tools, and hold its verdict against what it must be."""
    faults = []
    for campaign, wanted in WANTED.items():
        verdict = _verdict(campaign)
        print(f"{campaign}: {verdict['verdict']}")
        if verdict["verdict"] != wanted:
            faults.append(f"{campaign}: expected {wanted}, got {verdict['verdict']}")
        if campaign == "context-kv-cpu" and ASSERTIONS not in _assertions(verdict):
            faults.append(f"{campaign}: expected {ASSERTIONS} equality assertions, got {_assertions(verdict)}")
    for fault in faults:
        print(f"{fault}; read the report of the run", file=sys.stderr)
    return 1 if faults else 0


def _verdict(campaign: str) -> dict[str, Any]:
    packets = json.loads(subprocess.run([LABCTL, "status", campaign, "--json"], check=True, capture_output=True).stdout)
    run = Path(packets[-1]["run"])
    subprocess.run([LABCTL, "seal", "verify", str(run)], check=True)
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "manifest-sha256.txt"], check=True, cwd=run)
    (analysis,) = Path(".labctl/analyses").glob(f"{run.name}-*")
    found: dict[str, Any] = json.loads((analysis / "data" / "verdict.json").read_bytes())
    return found


def _assertions(verdict: dict[str, Any]) -> list[str]:
    figures = [figure for gate in verdict["gates"] for figure in gate["figures"]]
    return [figure["value"] for figure in figures if (figure["name"], figure["where"]) == ("assertions", "")]


if __name__ == "__main__":
    sys.exit(main())
