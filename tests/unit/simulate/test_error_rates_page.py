"""The page of error rates holds every cell of the catalogue once, and says of each that is off its bound that it is."""

import re
from pathlib import Path

from labctl.simulate.catalogue import sections
from labctl.simulate.table import TITLES

PAGE = (Path(__file__).parents[3] / "docs" / "error-rates.md").read_text(encoding="utf-8")
ROWS = {
    cells[0]: cells[1:]
    for line in PAGE.splitlines()
    if line.startswith(("| 4 starts", "| 8 starts"))
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}


def test_every_cell_of_the_catalogue_stands_on_the_page_and_no_other() -> None:
    assert list(ROWS) == [cell.name for section in sections() for cell in section.cells]
    assert all(title in PAGE for title in TITLES.values())
    assert all(f"### {section.title}" in PAGE for section in sections())


def test_each_rate_lies_within_its_interval() -> None:
    for cells in ROWS.values():
        assert len(cells) == len(TITLES)
        for text in cells:
            rate, lower, upper = map(float, re.findall(r"\d+\.\d+", text))
            assert lower <= rate <= upper


def test_a_cell_is_marked_iff_the_default_rules_are_off_its_bound() -> None:
    for section in sections():
        for cell in section.cells:
            text = ROWS[cell.name][0]
            rate = float(text.split()[0]) / 100
            is_off = (section.at_most is not None and rate > section.at_most) or (
                section.at_least is not None and rate < section.at_least
            )
            assert ("**off**" in text) == is_off, cell.name


def test_the_page_names_its_command_and_the_power_rule() -> None:
    assert "labctl simulate" in PAGE
    assert "power rule" in PAGE
