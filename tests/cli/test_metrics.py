"""`labctl metrics`: every metric with its formula, for people and for machines."""

import json
import subprocess
import sys

from labctl.records.metric_registry import METRICS


def labctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "labctl", *words], capture_output=True, text=True, check=False, env={})


def test_the_list_names_every_metric_with_its_formula() -> None:
    done = labctl("metrics", "list")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [metric.id for metric in METRICS]
    assert all(metric.formula in line for metric, line in zip(METRICS, lines, strict=True))


def test_one_metric_is_shown_whole() -> None:
    done = labctl("metrics", "show", "decode_rate_conventional_1_100", "--json")
    said = json.loads(done.stdout)
    assert (said["formula"], said["unit"], said["version"]) == (METRICS[0].formula, "tokens/s", 1)
    assert labctl("metrics", "show", "survival_2").stdout.startswith("id: survival_N\n")


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    done = labctl("metrics", "show", "speed")
    assert done.returncode == 3
    assert done.stderr.endswith("[NOT_FOUND]\n")
    assert "decode_rate_full" in done.stderr
