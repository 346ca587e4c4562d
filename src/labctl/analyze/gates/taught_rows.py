"""The rows that a gate picks, held against what the oracle says of them."""

from collections.abc import Callable

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.exact_tokens import ExpectedRow, compare_row, expected_rows, is_exact
from labctl.analyze.gates.findings import Findings

Picked = Callable[[LegEvidence], tuple[int, ...]]
"""The places (from 0) of the rows that a gate looks at."""


def judge_taught_rows(findings: Findings, evidence: RunEvidence, picked: Picked, at_least: tuple[int, str]) -> None:
    """Check the picked rows of every start; a start with too few of them is not evaluated.

    Args:
        findings: the gate's.
        evidence: the run.
        picked: which rows count.
        at_least: how many of them a start must have, and what they are called.
    """
    expected = expected_rows(evidence)
    if expected is None:
        findings.lacks("neither a teacher nor a first control start is there")
        return
    for leg in evidence.legs:
        _judge_leg(findings, leg, (picked(leg), expected), at_least)


def _judge_leg(
    findings: Findings, leg: LegEvidence, rows: tuple[tuple[int, ...], tuple[ExpectedRow, ...]], wanted: tuple[int, str]
) -> None:
    places, expected = rows
    count, name = wanted
    if len(places) < count:
        findings.lacks(f"{leg.name}: {len(places)} {name}, where {count} must be")
        return
    exact = 0
    for place in places:
        row, where = leg.rows[place], f"{leg.name} row {leg.rows[place].row}"
        findings.holds("a row of the oracle", where, ("one", "none"), is_met=place < len(expected))
        if place < len(expected):
            compare_row(findings, where, row, expected[place])
            exact += is_exact(row, expected[place])
    findings.figures.append(figure("exact_rows", leg.name, exact, f"of {len(places)} {name}"))
