"""The rows of a foreign client: its printed speeds, computed again where its stamps are there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from labctl.analyze.figures import figure, median
from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import StartFolder
from labctl.analyze.timing import NS_PER_MS, NS_PER_S, ONE_OFF_NS, ONE_OFF_TIMES, RATE, WINDOW_TOKENS
from labctl.engines.foreign_lab import BENCH, BENCH_EXTRACT
from labctl.prereg.field_types import MetricId

LEGACY, CONVENTIONAL = MetricId.DECODE_RATE_LEGACY_100_1_100, MetricId.DECODE_RATE_CONVENTIONAL_1_100
PRINTED = "tok_s_1_100_after_ttft"
PER_CONVENTION = Fraction(WINDOW_TOKENS - 1, WINDOW_TOKENS)
TOLERANCE = Fraction(1, 10**9)
"""A client that computes in binary floating point is that near to the exact value."""


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One row of the client's file."""

    prompt: str
    printed: Fraction | None
    tokens: int | None
    token_s: tuple[Fraction, ...]
    """When each token came, in seconds; empty where that is left out."""
    chunk_s: tuple[Fraction, ...]
    """When each chunk came."""


def look_at_bench(folder: StartFolder) -> dict[str, object] | None:
    """Take the client's speeds, compute them again where that can be done, and name what cannot; gives its file."""
    name = BENCH if BENCH in folder.names else BENCH_EXTRACT if BENCH_EXTRACT in folder.names else BENCH
    document = folder.document(name, "speeds, stamps and tokens of the rows")
    if document is None:
        return None
    if name == BENCH_EXTRACT:
        folder.draft.missing.append(f"{BENCH}: only an extract of it is there, so most speeds are the lab's word")
    lines = document.get("rows")
    rows = [_row(line) for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []
    _tell_headline(folder.draft, document, rows)
    for row in rows:
        _compute_again(folder.draft, name, row)
        _tell_gap(folder.draft, name, row)
    bundled = [row for row in rows if row.chunk_s and row.tokens is not None and len(row.chunk_s) < row.tokens]
    if bundled:
        shown = f"{len(bundled[0].chunk_s)} chunks bring {bundled[0].tokens} tokens"
        folder.draft.finds(name, f"{shown}: a token's time is its chunk's, not its own", len(bundled))
    return document


def _row(line: Mapping[str, object]) -> BenchRow:
    tokens = line.get("completion_tokens")
    return BenchRow(
        prompt=str(line.get("prompt_id")),
        printed=_number(line.get(PRINTED)),
        tokens=tokens if type(tokens) is int else None,
        token_s=_numbers(line.get("token_id_offsets_s")),
        chunk_s=_numbers(line.get("chunk_offsets_s")),
    )


def _tell_headline(draft: ViewDraft, document: Mapping[str, object], rows: Sequence[BenchRow]) -> None:
    summary = document.get("summary")
    told = summary.get(PRINTED) if isinstance(summary, dict) else None
    printed = _number(told.get("median")) if isinstance(told, dict) else None
    if printed is None:
        draft.missing.append(f"the median of {PRINTED}")
        return
    draft.metrics.append(figure(LEGACY, "as printed", printed, RATE))
    draft.metrics.append(figure(CONVENTIONAL, "99/100 of it", printed * PER_CONVENTION, RATE))
    draft.finds(
        "headline", "it counts 100 tokens over 99 intervals; never compare it with a rate of the other convention"
    )
    rates = [rate for row in rows if (rate := _legacy_rate(row)) is not None]
    count = told.get("count") if isinstance(told, dict) else None
    if len(rates) == count:
        _hold_near(draft, "median of the rows, computed again", printed, median(rates))


def _compute_again(draft: ViewDraft, name: str, row: BenchRow) -> None:
    rate = _legacy_rate(row)
    if rate is not None and row.printed is not None:
        _hold_near(draft, f"speed of {row.prompt} in {name}, computed again", row.printed, rate)


def _legacy_rate(row: BenchRow) -> Fraction | None:
    if len(row.token_s) < WINDOW_TOKENS or row.token_s[WINDOW_TOKENS - 1] <= row.token_s[0]:
        return None
    return WINDOW_TOKENS / (row.token_s[WINDOW_TOKENS - 1] - row.token_s[0])


def _hold_near(draft: ViewDraft, what: str, printed: Fraction, computed: Fraction) -> None:
    is_met = abs(printed - computed) <= TOLERANCE * abs(computed)
    draft.holds(what, (float(printed), float(computed)), is_met=is_met)


def _tell_gap(draft: ViewDraft, name: str, row: BenchRow) -> None:
    gaps = [later - earlier for earlier, later in pairwise(row.chunk_s)]
    largest = max(gaps, default=Fraction(0))
    if gaps and largest * NS_PER_S >= ONE_OFF_NS and largest > ONE_OFF_TIMES * median(gaps):
        stood_ms = int(largest * NS_PER_S) // NS_PER_MS
        after = gaps.index(largest) + 1
        shown = (
            "" if row.printed is None else f"; its printed speed {float(row.printed):.3f} is not that of a steady row"
        )
        draft.finds(name, f"{row.prompt} stood still for {stood_ms} ms after {after} chunks, once{shown}")


def _number(value: object) -> Fraction | None:
    return Fraction(repr(value)) if type(value) in (int, float) else None


def _numbers(value: object) -> tuple[Fraction, ...]:
    found = [_number(one) for one in value] if isinstance(value, list) else []
    return () if None in found else tuple(one for one in found if one is not None)
