"""The metric registry's formulas for one row and one start, exact from integer nanoseconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import assert_never

from labctl.analyze.figures import decimal_figure, figure, mean, median, quantile, sample_sd
from labctl.analyze.stream import StreamRow
from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from labctl.prereg.field_types import MetricId
from labctl.records.verdict import Figure, RowFigures, StartHeadline

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
WINDOW_TOKENS = 100
RATE = "tokens/s"
P10 = Fraction(1, 10)
BOTH_CONVENTIONS = (MetricId.DECODE_RATE_CONVENTIONAL_1_100, MetricId.DECODE_RATE_LEGACY_100_1_100)
ONE_OFF_NS = 100_000_000
ONE_OFF_TIMES = 20
GAP_SHARES = (("p50", Fraction(1, 2)), ("p90", Fraction(9, 10)), ("p99", Fraction(99, 100)))


def rate_of_row(row: StreamRow, metric: MetricId) -> Fraction | None:
    """The rate of a valid row in tokens per second, or None where the row does not count or is too short."""
    if row.faults or row.clock is None or not row.events:
        return None
    count, first_ns, last_ns = len(row.token_ids), row.events[0].arrival_ns, row.events[-1].arrival_ns
    match metric:
        case MetricId.DECODE_RATE_CONVENTIONAL_1_100:
            rate = _window_rate(row, WINDOW_TOKENS - 1)
        case MetricId.DECODE_RATE_LEGACY_100_1_100:
            rate = _window_rate(row, WINDOW_TOKENS)
        case MetricId.DECODE_RATE_CHUNKED_1_100:
            rate = _chunked_rate(row)
        case MetricId.DECODE_RATE_FULL:
            rate = _per_second(count - 1, last_ns - first_ns)
        case MetricId.WALL_RATE:
            rate = _per_second(count, last_ns - row.clock.sent_ns)
        case _:
            assert_never(metric)
    return rate


def headline(rows: Iterable[StreamRow], metric: MetricId) -> Fraction | None:
    """The median over all rows of a start, or None where a row does not count."""
    rates = [rate_of_row(row, metric) for row in rows]
    valid = [rate for rate in rates if rate is not None]
    return median(valid) if valid and len(valid) == len(rates) else None


def first_token_ns(row: StreamRow) -> int | None:
    """From the request sent to the first event with a token."""
    return None if row.faults or row.clock is None or not row.events else row.events[0].arrival_ns - row.clock.sent_ns


def coalesced_tokens(row: StreamRow) -> int:
    """Tokens whose event shared its read with another."""
    return sum(event.tokens for event in row.events if event.is_coalesced)


@dataclass(frozen=True, slots=True)
class OneOffGap:
    """The one gap of a row that is like no other: something was built, loaded or captured there."""

    after_tokens: int
    ns: int


def one_off_gap(row: StreamRow) -> OneOffGap | None:
    """The largest gap of a valid row, where it is at least 100 ms and more than 20 times the row's median gap."""
    pairs = [] if row.faults else pairwise(row.events)
    gaps = [later.arrival_ns - earlier.arrival_ns for earlier, later in pairs]
    largest = max(gaps, default=0)
    if largest < ONE_OFF_NS or largest <= ONE_OFF_TIMES * median([Fraction(gap) for gap in gaps]):
        return None
    at = gaps.index(largest)
    return OneOffGap(sum(event.tokens for event in row.events[: at + 1]), largest)


def steady_cycle_ms(rows: Iterable[StreamRow]) -> Fraction | None:
    """Milliseconds from event to event, over the valid rows that hold no one-off gap."""
    steady = [row for row in rows if not row.faults and row.clock and len(row.events) > 1 and one_off_gap(row) is None]
    cycles = sum(len(row.events) - 1 for row in steady)
    spans_ns = sum(row.events[-1].arrival_ns - row.events[0].arrival_ns for row in steady)
    return Fraction(spans_ns, cycles * NS_PER_MS) if cycles else None


def has_late_end(row: StreamRow) -> bool:
    """Whether the first or the last token of the 1-100 window (of a shorter row: its last) shared its read."""
    if not row.events:
        return False
    ends = (0, min(len(row.token_ids), WINDOW_TOKENS) - 1)
    return any(row.event_of(token).is_coalesced for token in ends)


def row_figures(leg: str, row: StreamRow) -> RowFigures:
    """Every metric of one row."""
    where = f"{leg} row {row.row}"
    rates = [(metric, rate_of_row(row, metric)) for metric in MetricId]
    figures = [figure(metric.value, where, rate, RATE) for metric, rate in rates if rate is not None]
    waits = _waits(row)
    figures += [figure(name, where, value, "ns") for name, value in waits]
    figures += [figure(name, where, value, "ns") for name, value in _gap_figures(row)]
    if (one_off := one_off_gap(row)) is not None:
        figures.append(figure("one_off_gap", where, one_off.ns, "ns"))
    figures.append(figure("coalesced_tokens", where, coalesced_tokens(row), "tokens"))
    return RowFigures(
        leg=leg,
        row=row.row,
        prompt=row.prompt_id,
        token_count=len(row.token_ids),
        figures=tuple(figures),
        token_ids_sha256=sha256_hex(canonical_json(list(row.token_ids))),
    )


def start_headline(leg: str, rows: tuple[StreamRow, ...], metric: MetricId) -> StartHeadline:
    """The figures of one start; rows that do not count are left out here and said to be invalid elsewhere."""
    rates = [rate for row in rows if (rate := rate_of_row(row, metric)) is not None]
    figures: list[Figure] = []
    if rates:
        figures += [figure(name, leg, value, RATE) for name, value in _spread(metric, rates)]
    if len(rates) > 1:
        figures.append(decimal_figure("sample_sd", leg, sample_sd(rates), RATE))
    if rows and (first := rate_of_row(rows[0], metric)) is not None:
        figures.append(figure("first_row", leg, first, RATE))
    if rest := [rate for row in rows[1:] if (rate := rate_of_row(row, metric)) is not None]:
        figures.append(figure("without_first_row", leg, median(rest), RATE))
    figures += [figure(one.value, leg, rate, RATE) for one, rate in _conventions(rows, metric)]
    figures += _start_counts(leg, rows)
    return StartHeadline(leg=leg, rows=len(rows), figures=tuple(figures))


def _spread(metric: MetricId, rates: list[Fraction]) -> list[tuple[str, Fraction]]:
    return [
        (metric.value, median(rates)),
        ("mean", mean(rates)),
        ("p10", quantile(rates, P10)),
        ("minimum", min(rates)),
        ("maximum", max(rates)),
    ]


def _conventions(rows: tuple[StreamRow, ...], metric: MetricId) -> list[tuple[MetricId, Fraction]]:
    """Both conventions of the window side by side, each under its own name; the headline's stands already."""
    others = [one for one in BOTH_CONVENTIONS if one is not metric]
    known = [(one, [rate for row in rows if (rate := rate_of_row(row, one)) is not None]) for one in others]
    return [(one, median(rates)) for one, rates in known if rates]


def _start_counts(leg: str, rows: tuple[StreamRow, ...]) -> list[Figure]:
    waits = [Fraction(wait) for row in rows if (wait := first_token_ns(row)) is not None]
    figures = [figure("ttft_median", leg, median(waits), "ns")] if waits else []
    tokens = sum(len(row.token_ids) for row in rows)
    figures.append(figure("tokens", leg, tokens, "tokens"))
    coalesced = sum(map(coalesced_tokens, rows))
    figures.append(figure("coalesced_tokens", leg, coalesced, "tokens"))
    if tokens:
        figures.append(figure("coalesced_share", leg, Fraction(100 * coalesced, tokens), "percent"))
    figures.append(figure("invalid_rows", leg, sum(bool(row.faults) for row in rows), "rows"))
    if (steady_ms := steady_cycle_ms(rows)) is not None:
        figures.append(figure("cycle_ms_steady", leg, steady_ms, "ms"))
    figures.append(figure("one_off_gap_rows", leg, sum(one_off_gap(row) is not None for row in rows), "rows"))
    return figures


def _waits(row: StreamRow) -> list[tuple[str, int]]:
    first_ns = first_token_ns(row)
    if first_ns is None or row.clock is None:
        return []
    from_connect_ns = row.events[0].arrival_ns - row.clock.connect_started_ns
    return [("ttft", first_ns), ("ttft_from_connect", from_connect_ns)]


def _gap_figures(row: StreamRow) -> list[tuple[str, Fraction]]:
    if row.faults:
        return []
    # The stamp of a coalesced read belongs to its last event only, so no gap next to one is a measurement.
    gaps = [
        Fraction(later.arrival_ns - earlier.arrival_ns)
        for earlier, later in pairwise(row.events)
        if not (earlier.is_coalesced or later.is_coalesced)
    ]
    if not gaps:
        return []
    figures = [(f"inter_event_latency_{name}", quantile(gaps, share)) for name, share in GAP_SHARES]
    return [*figures, ("inter_event_latency_max", max(gaps))]


def _window_rate(row: StreamRow, counted: int) -> Fraction | None:
    if len(row.token_ids) < WINDOW_TOKENS:
        return None
    return _per_second(counted, row.arrival_ns(WINDOW_TOKENS - 1) - row.events[0].arrival_ns)


def _chunked_rate(row: StreamRow) -> Fraction | None:
    tokens = 0
    for event in row.events:
        tokens += event.tokens
        if tokens >= WINDOW_TOKENS:
            return _per_second(tokens - row.events[0].tokens, event.arrival_ns - row.events[0].arrival_ns)
    return None


def _per_second(tokens: int, elapsed_ns: int) -> Fraction | None:
    return Fraction(tokens * NS_PER_S, elapsed_ns) if tokens > 0 and elapsed_ns > 0 else None
