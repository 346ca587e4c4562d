"""Every bad file yields the one complaint that its name says, on the line that its name says."""

import re
from pathlib import Path

import pytest

from labctl.prereg.checking import check_paths

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prereg"
BAD = sorted(path for path in (FIXTURES / "bad").rglob("*") if "__" in path.name)
GOOD = [FIXTURES / folder for folder in ("good", "hosts", "suites", "oracles", "models")]


def test_there_are_many_bad_files() -> None:
    assert len(BAD) >= 190


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_a_bad_file_yields_its_one_complaint(path: Path) -> None:
    said = re.search(r"__([A-Z_]+)__L([0-9]+)\.", path.name)
    assert said is not None
    (report,) = check_paths([path])
    found = [(problem.code.value, problem.where.rsplit(":", 2)[1]) for problem in report.problems]
    assert found == [said.groups()]
    assert report.problems[0].where.startswith(report.path)


def test_the_good_files_from_which_they_were_made_have_no_fault() -> None:
    assert [report for report in check_paths(GOOD) if not report.is_ok] == []
