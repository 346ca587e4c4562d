"""What `labctl prereg validate` of one file costs, against importing the libraries that it cannot do without.

The two commands run in turn, so that a machine whose speed drifts does so for both; bytecode is cached for both.

    python -m benchmarks.validation [--rounds N] [--json]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CAMPAIGN = REPOSITORY / "campaigns" / "quickstart" / "campaign.yaml"
LABCTL = [sys.executable, "-m", "labctl", "prereg", "validate", str(CAMPAIGN)]
IMPORTS = [sys.executable, "-c", "import pydantic, yaml, typer"]
LIMIT = 2.5


def main() -> None:
    """Time both in turn and print the ratio of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="runs of each command")
    parser.add_argument("--json", action="store_true", help="machine output")
    arguments = parser.parse_args()
    for command in (LABCTL, IMPORTS):
        _run(command)  # so that bytecode is cached
    rounds = [(_run(LABCTL), _run(IMPORTS)) for _ in range(arguments.rounds)]
    facts = {
        "validate_wall_s": statistics.median(ours[0] for ours, _ in rounds),
        "imports_wall_s": statistics.median(theirs[0] for _, theirs in rounds),
        "wall_ratio": statistics.median(ours[0] / theirs[0] for ours, theirs in rounds),
        "cpu_ratio": statistics.median(ours[1] / theirs[1] for ours, theirs in rounds),
        "limit": LIMIT,
    }
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        print(f"{name:16} {value:.3f}")


def _run(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_s = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall_s = time.monotonic() - begin_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
