"""Two starts side by side, as lines for a terminal."""

from collections.abc import Iterator

from labctl.records.start_comparison import StartComparison
from labctl.records.verdict import Figure
from labctl.report.escape import plain
from labctl.report.numbers import short, unit

BETWEEN = " vs "


def comparison_lines(comparison: StartComparison) -> tuple[str, ...]:
    """The comparison, one line a figure."""
    return tuple(plain(line) for line in _lines(comparison))


def _lines(comparison: StartComparison) -> Iterator[str]:
    for start in comparison.starts:
        yield f"{start.side}: {start.leg} of {start.run} ({start.campaign}, {start.engine})"
    yield f"{comparison.rows} equal requests; figures, not a verdict"
    sides: dict[str, dict[str, Figure]] = {}
    for one in comparison.figures:
        if one.where in ("first", "second"):
            sides.setdefault(one.name, {})[one.where] = one
    for name, found in sides.items():
        shown = ", ".join(f"{where} {short(one)}" for where, one in found.items())
        yield f"  {name}: {shown} {unit(next(iter(found.values())))}"
    for one in comparison.figures:
        if one.where not in ("first", "second"):
            where = "" if BETWEEN in one.where else f" in {one.where}"
            yield f"  {one.name}{where}: {short(one)} {unit(one)}"
    yield from (f"note: {doubt}" for doubt in comparison.doubts)
