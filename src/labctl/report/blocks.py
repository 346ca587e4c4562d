"""Building blocks of a Markdown report: bullets and tables."""

from collections.abc import Iterable, Sequence

from labctl.report.escape import markdown


def bullets(title: str, lines: Iterable[str]) -> list[str]:
    """A titled list, or nothing where there is nothing to list."""
    listed = [f"- {markdown(line)}" for line in lines]
    return [f"{title}:", "", *listed, ""] if listed else []


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; the cells are Markdown already."""
    rule = "|".join("---" for _ in header)
    return [f"| {' | '.join(header)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]
