"""The gate that breaks the code on purpose can do so, and a break turns its tests red; `make faults` tries them all."""

from pathlib import Path

import pytest

from scripts.mutation_gate import BREAKS, TOP, Break, copy_project, is_noticed


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: one.name)
def test_what_a_break_replaces_and_the_tests_it_names_are_there(one: Break) -> None:
    assert (TOP / "src/labctl" / one.file).read_text().count(one.old) == 1
    for node in one.tests:
        path, _, name = node.partition("::")
        assert not name or f"def {name}(" in (TOP / "tests" / path).read_text()


def test_a_broken_check_turns_its_tests_red_and_sound_code_does_not(tmp_path: Path) -> None:
    copy_project(tmp_path)
    tie = next(one for one in BREAKS if one.name == "accept a tie as a win")
    assert is_noticed(tmp_path, tie)
    harmless = Break("none", tie.file, tie.old, f"{tie.old}  # no change", tie.tests)
    assert not is_noticed(tmp_path, harmless)
