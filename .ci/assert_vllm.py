"""Assert what the last sealed run of a vLLM campaign says: sound evidence, and the verdict that its gates demand.

Speed is measured, never assumed: a timing gate may fail on this machine, and then the verdict must say so by name. A
campaign without timing gates must end as it always does.
"""

import json
import subprocess
import sys
from pathlib import Path

CERTAIN = {"vllm-cpu-chat": "exploratory_pass"}
SOUND = ("identity", "complete_rows", "treatment", "cold", "clean_log", "accounting")
EXACT = ("exact_tokens", "cross_leg_exact")
LABCTL = str(Path(".venv/bin/labctl"))


def main(campaign: str) -> int:
    """Find the campaign's last run, verify its seal with two tools, and hold its verdict against its gates."""
    packets = json.loads(subprocess.run([LABCTL, "status", campaign, "--json"], check=True, capture_output=True).stdout)
    run = Path(packets[-1]["run"])
    subprocess.run([LABCTL, "seal", "verify", str(run)], check=True)
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "manifest-sha256.txt"], check=True, cwd=run)
    (analysis,) = Path(".labctl/analyses").glob(f"{run.name}-*")
    verdict = json.loads((analysis / "data" / "verdict.json").read_bytes())
    results = {gate["id"]: gate["result"] for gate in verdict["gates"]}
    failed = [name for name, result in results.items() if result != "passed"]
    print(f"{campaign}: {verdict['verdict']}; gates that did not pass: {', '.join(failed) or 'none'}")
    unsound = [name for name in SOUND if results[name] != "passed"]
    if unsound:
        print(json.dumps([gate for gate in verdict["gates"] if gate["id"] in unsound], indent=1))
        return 1
    return 0 if verdict["verdict"] == CERTAIN.get(campaign, _demanded(results)) else 1


def _demanded(results: dict[str, str]) -> str:
    if any(results[name] != "passed" for name in EXACT):
        return "diagnostic_measured_not_exact"
    if any(result != "passed" for result in results.values()):
        return "negative_or_inconclusive_stop"
    return "exploratory_pass"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
