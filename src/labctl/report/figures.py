"""The figures of a report: starts and pairs for people, then every exact value, then the rows."""

from collections.abc import Iterator

from labctl.records.verdict import Figure, Verdict
from labctl.report.answer import METRICS
from labctl.report.blocks import table
from labctl.report.numbers import exact, full, short, unit

SPREAD_COLUMNS = ("mean", "sample_sd", "p10", "minimum", "maximum", "first_row", "ttft_median", "coalesced_tokens")
ROW_COLUMNS = ("ttft", "inter_event_latency_p50", "inter_event_latency_p99", "inter_event_latency_max")
UNITS_NOTE = "Rates in tokens/s, times in ms."
GAP_NOTE = "An event's gap is measured only where neither event shared its read with another."
EXACT_NOTE = "The value to twelve digits, and as it was computed; times in ns. A fraction too long to read is in `{}`."


def starts(verdict: Verdict) -> list[str]:
    """The spread of rows within each start."""
    if not verdict.starts:
        return []
    named = [(start, {one.name: one for one in start.figures}) for start in verdict.starts]
    columns = [*dict.fromkeys(name for _, figures in named for name in figures if name in METRICS), *SPREAD_COLUMNS]
    cells = [(start.leg, str(start.rows), *(short(figures.get(name)) for name in columns)) for start, figures in named]
    header = ("start", "rows", *(f"`{name}`" for name in columns))
    return ["## Starts", "", UNITS_NOTE, "", *table(header, cells), ""]


def effect(verdict: Verdict) -> list[str]:
    """The effect by pair and over the run."""
    if not verdict.effect:
        return []
    cells = [(one.where or "run", f"`{one.name}`", short(one), unit(one), exact(one)) for one in verdict.effect]
    return ["## Pairs", "", *table(("pair", "figure", "value", "unit", "exact"), cells), ""]


def exact_values(verdict: Verdict) -> list[str]:
    """Every figure of starts and gates as it was computed."""
    cells = [
        (source, one.where or "run", f"`{one.name}`", one.decimal, one.unit, exact(one))
        for source, one in _sourced(verdict)
    ]
    if not cells:
        return []
    header = ("of", "where", "figure", "value", "unit", "exact")
    return ["## Exact values", "", EXACT_NOTE.format("verdict.json"), "", *table(header, cells), ""]


def rows(verdict: Verdict) -> list[str]:
    """Every row of every start."""
    if not verdict.rows:
        return []
    named = [(row, {one.name: one for one in row.figures}) for row in verdict.rows]
    columns = [*dict.fromkeys(name for _, figures in named for name in figures if name in METRICS), *ROW_COLUMNS]
    cells = [
        (row.leg, str(row.row), row.prompt, str(row.token_count), *(full(figures.get(name)) for name in columns))
        for row, figures in named
    ]
    header = ("start", "row", "prompt", "tokens", *(f"`{name}`" for name in columns))
    return ["## Rows", "", f"{UNITS_NOTE} {GAP_NOTE}", "", *table(header, cells), ""]


def _sourced(verdict: Verdict) -> Iterator[tuple[str, Figure]]:
    for start in verdict.starts:
        yield from (("start", one) for one in start.figures)
    for gate in verdict.gates:
        yield from ((f"`{gate.id}`", one) for one in gate.figures)
