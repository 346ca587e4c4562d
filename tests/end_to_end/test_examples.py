"""The committed examples: every one verifies, is judged as its story says, and the refused ones are refused again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.seal.verify import open_sealed_run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "runs.example"
VERDICTS = {
    "quickstart": "exploratory_pass",
    "vllm-cpu-ngram": "exploratory_pass",
    "vllm-cpu-kv": "comparison_measured",
    "vllm-cpu-chat": "exploratory_pass",
    "vllm-cpu-prefix": "negative_or_inconclusive_stop",
    "broken-server": "infrastructure_abort_after_measurement_start",
    "quickstart-calibration": "calibration",
    "vllm-cpu-calibration": "calibration",
    "context-kv-cpu": "exact_4_card_component_pass",
    "context-kv-h200": "exact_2_card_component_pass",
    "probe-cpu": "pass",
    "probe-h200": "pass",
}
MAX_RUN_BYTES = {"vllm-cpu-calibration": 3_500_000}  # eight starts of an engine with long lists of counters
USUAL_MAX_RUN_BYTES = 3_000_000


@pytest.mark.parametrize(("name", "verdict"), VERDICTS.items())
def test_an_example_is_judged_again_as_its_story_says(name: str, verdict: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-I", "-P", "-m", "labctl.analyze", str(EXAMPLES / name)], capture_output=True, check=True
    )
    assert json.loads(answer.stdout)["verdict"] == verdict


@pytest.mark.parametrize("name", VERDICTS)
def test_the_analyzer_inside_an_example_agrees_without_labctl(name: str) -> None:
    analyzer = EXAMPLES / name / "data" / "analyzers" / "analyze_run.py"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(analyzer), str(EXAMPLES / name)], capture_output=True, check=True, cwd="/"
    )
    assert json.loads(answer.stdout)["verdict"] == VERDICTS[name]


@pytest.mark.parametrize("name", VERDICTS)
def test_an_example_is_small_and_checks_out_under_sha256sum(name: str) -> None:
    sealed = open_sealed_run(EXAMPLES / name)
    limit_bytes = MAX_RUN_BYTES.get(name, USUAL_MAX_RUN_BYTES)
    assert sum(path.stat().st_size for path in sealed.root.rglob("*") if path.is_file()) <= limit_bytes
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        checked = subprocess.run(["sha256sum", "-c", "--strict", "--quiet", manifest], cwd=sealed.root, check=False)
        assert checked.returncode == 0


def test_the_refused_file_is_refused_again_with_the_same_words(tmp_path: Path) -> None:
    campaigns = tmp_path / "campaigns"
    for folder in ("hosts", "suites", "oracles"):
        (campaigns / folder).mkdir(parents=True)
        for file in (ROOT / "campaigns" / folder).iterdir():
            (campaigns / folder / file.name).write_bytes(file.read_bytes())
    (campaigns / "quickstart").mkdir()
    refused = campaigns / "quickstart" / "refused.yaml"
    refused.write_bytes((EXAMPLES / "refused" / "refused.yaml").read_bytes())
    answer = subprocess.run(
        [sys.executable, "-m", "labctl", "prereg", "validate", "campaigns/quickstart/refused.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = (EXAMPLES / "refused" / "refusals.txt").read_text().split("exit status 3\n")[0].splitlines()[1:]
    assert answer.returncode == 3
    assert answer.stdout.splitlines() + answer.stderr.splitlines() == said
