"""The page of lessons leaves none out, and points at tests that exist."""

import re
from fractions import Fraction

from labctl.analyze.figures import gain_percent
from tests.faults.table import TOP, is_there

ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in (TOP / "docs/lessons.md").read_text("utf-8").splitlines()
    if re.match(r"\| [0-9]+ \|", line)
]


def test_every_lesson_has_its_line() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 55))
    assert all(len(row) == 4 and row[1] and row[2] for row in ROWS)


def test_every_lesson_is_answered_by_tests_that_exist_or_is_planned() -> None:
    missing = {row[0]: node for row in ROWS for node in re.findall(r"`([^`]+)`", row[3]) if not is_there(node)}
    assert missing == {}
    assert [row[0] for row in ROWS if not row[3] and not row[2].startswith("planned")] == []


def test_the_published_gain_is_not_what_its_own_figures_give() -> None:
    gain = gain_percent(Fraction("48.980858"), Fraction("19.401885"))
    assert round(gain, 2) == Fraction("152.45")
    assert round(gain, 2) != Fraction("151.68")
