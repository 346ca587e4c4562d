"""The table of error rates, as lines of Markdown."""

from collections.abc import Iterator

from labctl.simulate.catalogue import Section
from labctl.simulate.cells import Cell
from labctl.simulate.rule_sets import RuleSet
from labctl.simulate.run_cells import Count

HUNDRED = 100
TITLES = {
    RuleSet.DEFAULT: "labctl's rules for records",
    RuleSet.SEED: "the seed's rules",
    RuleSet.NAIVE: "two means of rows",
}


def header(section: Section, rules: tuple[RuleSet, ...]) -> Iterator[str]:
    """The head of one section."""
    yield f"### {section.title}"
    yield ""
    yield f"| cell | {' | '.join(TITLES[one] for one in rules)} |"
    yield "|---" * (len(rules) + 1) + "|"


def line(section: Section, cell: Cell, counts: tuple[Count, ...]) -> str:
    """One cell: the share that passed, in percent, with its exact 95 % interval."""
    shown = [_shown(count) + _mark(section, count) for count in counts]
    return f"| {cell.name} | {' | '.join(shown)} |"


def misses(section: Section, count: Count) -> bool:
    """Whether the default rules are off the section's bound."""
    if count.rules is not RuleSet.DEFAULT:
        return False
    is_over = section.at_most is not None and count.rate > section.at_most
    return is_over or (section.at_least is not None and count.rate < section.at_least)


def _shown(count: Count) -> str:
    lower, upper = count.interval()
    return f"{count.rate * HUNDRED:.2f} ({lower * HUNDRED:.2f} to {upper * HUNDRED:.2f})"


def _mark(section: Section, count: Count) -> str:
    return " **off**" if misses(section, count) else ""
