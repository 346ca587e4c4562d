"""The user's page says what the code does: its example validates, and it names every bad file."""

import re
import shutil
from pathlib import Path

from labctl.prereg.campaign_files import load_campaign
from labctl.prereg.card_files import load_any_campaign
from labctl.prereg.environment import BASE_ENVIRONMENT
from labctl.prereg.field_types import PLACEHOLDERS

TOP = Path(__file__).parents[3]
FIXTURES = TOP / "tests" / "fixtures" / "prereg"
PAGE = (TOP / "docs" / "preregistration.md").read_text()
NATIVE_PAGE = (TOP / "docs" / "components.md").read_text()


def test_the_example_of_the_page_validates(tmp_path: Path) -> None:
    root = tmp_path / "campaigns"
    for folder in ("hosts", "suites", "oracles", "models", "keys", "noise"):
        shutil.copytree(FIXTURES / folder, root / folder)
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (root / "mine").mkdir()
    (root / "mine" / "campaign.yaml").write_text(example)
    assert load_campaign(root / "mine" / "campaign.yaml").preregistration.model.id == "target-ngram"


def test_the_examples_of_the_page_of_components_validate(tmp_path: Path) -> None:
    root = tmp_path / "campaigns"
    for folder in ("hosts", "workers"):
        shutil.copytree(FIXTURES / folder, root / folder)
    examples = re.findall(r"```yaml\n(.*?)```", NATIVE_PAGE, re.DOTALL)
    (root / "mine").mkdir()
    for number, example in enumerate(examples):
        (root / "mine" / f"{number}.yaml").write_text(example)
    found = [load_any_campaign(root / "mine" / f"{number}.yaml").preregistration.model.kind for number in (0, 1)]
    assert found == ["component", "probe"]
    assert len(examples) == 2


def test_the_page_names_every_bad_file_and_no_other() -> None:
    slugs = {path.name.split("__")[0].partition("-")[2] for path in (FIXTURES / "bad").rglob("*__*")}
    cells = [
        line.rsplit("|", 2)[1] for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|---")
    ]
    named = {word for cell in cells for word in re.findall(r"[a-z0-9-]+", cell) if "-" in word or word in slugs}
    prose = {slug for slug in slugs if re.search(rf"(?<![a-z-]){slug}(?![a-z-])", PAGE)}
    assert slugs == prose
    assert named <= slugs


def test_the_page_names_every_placeholder_and_what_labctl_sets() -> None:
    assert all(f"`{name}`" in PAGE for name in (*PLACEHOLDERS, *BASE_ENVIRONMENT))
