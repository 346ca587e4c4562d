import subprocess
import sys

import pytest

QUESTION = "from labctl.campaign.checks import assertions_look as look; print(look().is_met, look().observed)"


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ([], "True optimization level 0"),
        (["-O"], "False optimization level 1"),
        (["-OO"], "False optimization level 2"),
    ],
)
def test_an_interpreter_without_assertions_runs_no_campaign(options: list[str], answer: str) -> None:
    said = subprocess.run([sys.executable, "-I", *options, "-c", QUESTION], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == answer
