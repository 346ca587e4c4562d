"""A path in a command, a variable or a treatment that nothing in the packet pins is refused when freezing."""

from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import FreezeRefused, Problem
from labctl.packet.freeze import FreezeRequest, freeze_packet
from tests.fakes.lab_repository import LabRepository

SERVED = '--served-model-name, "labctl-{nonce}"'


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    lab = LabRepository.create(tmp_path / "lab")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "template.jinja").write_text("x")
    return lab


def complaints(lab: LabRepository, added: str) -> list[Problem]:
    lab.edit_campaign(SERVED, f"{SERVED}, {added}")
    lab.commit("Name a path")
    try:
        freeze_packet(FreezeRequest(lab.campaign))
    except FreezeRefused as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    "added",
    [
        '--chat-template, "{file}"',
        '"--chat-template={file}"',
        '--rope, "{{\\"file\\": \\"{file}\\"}}"',
        '--download-dir, "{folder}"',
        '--download-dir, "{folder}/../elsewhere"',
    ],
)
def test_a_file_or_folder_that_nothing_pins_is_refused(added: str, lab: LabRepository) -> None:
    folder = lab.top.parent / "elsewhere"
    found = complaints(lab, added.format(file=folder / "template.jinja", folder=folder))
    assert [problem.code for problem in found] == [Code.BAD_PATH]
    assert found[0].where.startswith("service.command.")
    assert str(folder) in found[0].where


def test_a_script_of_the_repository_is_not_where_the_server_looks(lab: LabRepository) -> None:
    lab.write("scripts/serve.py", "print()\n")
    assert [problem.code for problem in complaints(lab, "scripts/serve.py")] == [Code.BAD_PATH]


@pytest.mark.parametrize(
    "added",
    [
        '--trace, "{leg_dir}/trace.json"',
        "--other, org/model",
        "--log, /dev/null",
        '--cache, "{cache_dir}/x"',
        '--n, "1.5"',
    ],
)
def test_what_is_no_path_there_or_made_for_the_start_is_taken(added: str, lab: LabRepository) -> None:
    assert complaints(lab, added) == []


def test_a_path_inside_a_pinned_source_is_taken_and_one_beside_it_is_not(lab: LabRepository) -> None:
    engine = LabRepository.create(lab.top.parent / "engine")
    lab.edit("campaigns/hosts/any-cpu.yaml", "sources: {}", f"sources: {{engine: {engine.top}}}")
    source = f'sources: [{{git: engine, commit: "{engine.head}"}}]'
    lab.edit_campaign("interpreter: embedded\n", f"interpreter: embedded\n{source}\n")
    assert complaints(lab, f'--template, "{engine.top}/README.md"') == []
    lab.edit_campaign("README.md", "../lab/README.md")
    assert [one.code for one in complaints(lab, "--more")] == [Code.BAD_PATH]
