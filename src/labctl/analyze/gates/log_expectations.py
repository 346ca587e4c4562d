"""What the lines that match one pattern must be: how many, of which ranks, with which named groups."""

import re
from collections import Counter
from dataclasses import dataclass

from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.log_lines import LineMatches

RANK = "rank"
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class ExpectedLines:
    """What must be there; where a count is None, at least one line."""

    pattern: str
    count: int | None = None
    ranks: int | None = None
    groups: tuple[tuple[str, str], ...] = ()


def as_text(groups: dict[str, int | str] | None) -> tuple[tuple[str, str], ...]:
    """Registered values of groups, as the log shows them."""
    return tuple(sorted((name, str(value)) for name, value in (groups or {}).items()))


def check_lines(findings: Findings, where: str, matches: LineMatches, expected: ExpectedLines) -> None:
    """Check the lines that one start printed."""
    what = f"lines matching {expected.pattern!r}"
    if expected.ranks is None:
        _check_count(findings, (what, where), matches.count, expected.count)
    else:
        _check_ranks(findings, (what, where), matches, expected)
    if expected.groups and matches.count:
        found = _values(matches, {name for name, _ in expected.groups})
        shown = "; ".join(str(dict(values)) for values in found)
        sides = (dict(expected.groups), shown)
        findings.holds(f"groups of {what}", where, sides, is_met=set(found) == {expected.groups})
        if len(found) == 1:
            (values,) = found
            findings.add(figure(name, where, int(text), "as logged") for name, text in values if NUMBER.fullmatch(text))


def _check_count(findings: Findings, place: tuple[str, str], found: int, count: int | None) -> None:
    what, where = place
    if count is None:
        findings.holds(what, where, ("at least 1", found), is_met=found >= 1)
    else:
        findings.equal(what, where, count, found)


def _check_ranks(findings: Findings, place: tuple[str, str], matches: LineMatches, expected: ExpectedLines) -> None:
    what, where = place
    by_rank: Counter[str] = Counter()
    for groups, count in matches.groups.items():
        by_rank[dict(groups).get(RANK, "")] += count
    ranks = [str(rank) for rank in range(expected.ranks or 0)]
    for rank in ranks:
        _check_count(findings, (f"{what} of rank {rank}", where), by_rank[rank], expected.count)
    findings.equal(f"{what} of other ranks", where, [], sorted(set(by_rank) - {*ranks}))


def _values(matches: LineMatches, names: set[str]) -> dict[tuple[tuple[str, str], ...], int]:
    found: Counter[tuple[tuple[str, str], ...]] = Counter()
    for groups, count in matches.groups.items():
        found[tuple(pair for pair in groups if pair[0] in names)] += count
    return dict(found)
