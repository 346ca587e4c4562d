"""Every metric: its id, formula, unit, events, source and version; a number that carries an id means this and no other.

Whoever changes a formula gives the metric a new version, and says in the change log what numbers it makes differ.
"""
# ruff: noqa: RUF001 (formulas are written as people write them)

from enum import StrEnum
from typing import NamedTuple


class Scope(StrEnum):
    """What a metric is of."""

    ROW = "row"
    START = "start"
    GATE = "gate"


class Metric(NamedTuple):
    """One metric."""

    id: str
    """Its name in verdicts; `N` at its end stands for a number."""
    formula: str
    """How it is computed, exactly."""
    unit_and_events: tuple[str, str]
    """The unit of computation, and what it is computed from: arrivals, counters or records."""
    scope_and_source: tuple[Scope, str]
    """What it is of, and where its events come from."""
    version: int = 1
    """Counts the changes of its meaning."""

    def described(self) -> dict[str, str | int]:
        """Every field by name."""
        unit, events = self.unit_and_events
        scope, source = self.scope_and_source
        named: dict[str, str | int] = {"id": self.id, "version": self.version, "formula": self.formula}
        return named | {"unit": unit, "events": events, "of": scope.value, "source": source}


WIRE = "the received bytes and the times of their reads"
COUNTERS = "the server's counters before and after the prompts"
SERVER = "the server's metrics or its log"
SAMPLES = "samples of the processes between rows"
INPUTS = "the received bytes and registered inputs"
METRICS: tuple[Metric, ...] = (
    Metric(
        "decode_rate_conventional_1_100",
        "99 / (t[99] − t[0])",
        ("tokens/s", "first and 100th token; no rate for a row of fewer than 100"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "decode_rate_legacy_100_1_100",
        (
            "100 / (t[99] − t[0]): exactly 100/99 of `decode_rate_conventional_1_100`, for comparison with old "
            "records; never mixed with it"
        ),
        ("tokens/s", "first and 100th token; no rate for a row of fewer than 100"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "decode_rate_chunked_1_100",
        (
            "(tokens through the event that holds token 100 − tokens of the first event) / (that event's arrival − "
            "the first event's)"
        ),
        ("tokens/s", "whole events"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "decode_rate_full",
        "(n − 1) / (t[n−1] − t[0])",
        ("tokens/s", "first and last token"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "wall_rate",
        "n / (t[n−1] − request sent)",
        ("tokens/s", "the moment before the request's last byte was handed to the kernel; last token"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "ttft",
        "t[0] − request sent",
        ("ns", "request sent; first event with a token"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "ttft_from_connect",
        "t[0] − connect started",
        ("ns", "the call that opens the connection; first event with a token"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "inter_event_latency_p50",
        "median of the gaps between neighbouring events with tokens, per event and not per token",
        ("ns", "gaps where neither event has coalesced"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "inter_event_latency_p90",
        "90 % quantile of these gaps, by linear interpolation",
        ("ns", "gaps where neither event has coalesced"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "inter_event_latency_p99",
        "99 % quantile of these gaps, by linear interpolation",
        ("ns", "gaps where neither event has coalesced"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "inter_event_latency_max",
        "the largest of these gaps",
        ("ns", "gaps where neither event has coalesced"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "one_off_gap",
        (
            "the largest gap between neighbouring events with tokens, coalesced or not, where it is at least 100 ms "
            "and more than 20 times their median: something was built, loaded or captured there"
        ),
        ("ns", "all events with tokens"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "coalesced_tokens",
        "tokens whose event shared its read (of a start: summed over its rows)",
        ("tokens", "all"),
        (Scope.ROW, WIRE),
    ),
    Metric(
        "mean",
        "arithmetic mean of the rate",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "sample_sd",
        "sample standard deviation of the rate: √(Σ (x − mean)² / (rows − 1)), to 40 digits",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "p10",
        "10 % quantile of the rate: linear interpolation between order statistics at position 0.1 · (rows − 1)",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "minimum",
        "slowest row",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "maximum",
        "fastest row",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "first_row",
        "the rate of row 1 alone: a fresh server is often slower there",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "without_first_row",
        "median of the rate over all rows but the first",
        ("tokens/s", "those of the headline"),
        (Scope.START, WIRE),
    ),
    Metric(
        "ttft_median",
        "median of `ttft`",
        ("ns", "those of `ttft`"),
        (Scope.START, WIRE),
    ),
    Metric(
        "coalesced_share",
        "100 · `coalesced_tokens` / `tokens`",
        ("percent", "all"),
        (Scope.START, WIRE),
    ),
    Metric(
        "cycle_ms_steady",
        (
            "Σ (t[n−1] − t[0]) / Σ (events with tokens − 1), over the rows that hold no `one_off_gap`: what one cycle"
            " takes, by the client's clock"
        ),
        ("ms", "first and last event with tokens of each row"),
        (Scope.START, WIRE),
    ),
    Metric(
        "one_off_gap_rows",
        "rows that hold a `one_off_gap`, which the doubts name",
        ("rows", "all events with tokens"),
        (Scope.START, WIRE),
    ),
    Metric(
        "acceptance_rate",
        "`accepted_tokens` / `draft_tokens`",
        ("share", "growth of draft tokens and of accepted tokens"),
        (Scope.GATE, COUNTERS),
    ),
    Metric(
        "accepted_per_cycle",
        "`accepted_tokens` / `drafts`",
        ("tokens", "growth of drafts and of accepted tokens"),
        (Scope.GATE, COUNTERS),
    ),
    Metric(
        "emitted_per_cycle",
        "1 + `accepted_per_cycle`: each round emits one token of its own",
        ("tokens", "growth of drafts and of accepted tokens"),
        (Scope.GATE, COUNTERS),
    ),
    Metric(
        "survival_N",
        "growth of the accepted tokens at position N (from 0) / `drafts`",
        ("share", "growth of drafts and of accepted tokens by position"),
        (Scope.GATE, COUNTERS),
    ),
    Metric(
        "cycle_ms",
        "1000 · growth of the server's summed decode time / `drafts`",
        ("ms", "growth of drafts and of the summed decode time"),
        (Scope.GATE, COUNTERS),
    ),
    Metric(
        "kv_capacity_tokens",
        (
            "the tokens that the server's cache-config metric states in its labels, else its blocks · tokens of a "
            "block; without it, the smallest number that the server's log states"
        ),
        ("tokens", "the state after the last prompt"),
        (Scope.GATE, SERVER),
    ),
    Metric(
        "resident_bytes",
        (
            "the largest sample of the processes' resident memory, taken between rows; pages that they share count in"
            " each"
        ),
        ("bytes", "one sample before the first row and one after each"),
        (Scope.GATE, SAMPLES),
    ),
    Metric(
        "highest_load",
        "the largest sample of the load average over a minute",
        ("1", "one sample before the first row and one after each"),
        (Scope.GATE, SAMPLES),
    ),
    Metric(
        "lowest_memory_available_bytes",
        "the smallest sample of the memory that the kernel can give",
        ("bytes", "one sample before the first row and one after each"),
        (Scope.GATE, SAMPLES),
    ),
    Metric(
        "lowest_cpu_mhz",
        "the smallest clock of any CPU in any sample; absent where the host does not say it",
        ("MHz", "one sample before the first row and one after each"),
        (Scope.GATE, SAMPLES),
    ),
    Metric(
        "roofline_percent",
        "100 · headline / `roofline`",
        ("percent", "those of the headline"),
        (Scope.GATE, INPUTS),
    ),
)


def find_metric(name: str) -> Metric | None:
    """The metric of an id; `survival_3` is found as `survival_N`."""
    generic = name.rstrip("0123456789")
    wanted = {name, f"{generic}N"} if generic.endswith("_") and generic != name else {name}
    return next((metric for metric in METRICS if metric.id in wanted), None)
