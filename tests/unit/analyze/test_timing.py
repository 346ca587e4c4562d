from fractions import Fraction

import pytest

from labctl.analyze.payload import RowFault, Usage
from labctl.analyze.stream import RowClock, StreamRow, TokenEvent
from labctl.analyze.timing import (
    ONE_OFF_TIMES,
    OneOffGap,
    coalesced_tokens,
    first_token_ns,
    has_late_end,
    headline,
    one_off_gap,
    rate_of_row,
    row_figures,
    start_headline,
    steady_cycle_ms,
)
from labctl.prereg.field_types import MetricId

CONVENTIONAL = MetricId.DECODE_RATE_CONVENTIONAL_1_100
GAP_NS = 10_000_001


def row_of(
    events: list[tuple[int, int]], fault: RowFault | None = None, coalesced: frozenset[int] = frozenset()
) -> StreamRow:
    """A row from (arrival, tokens) of each event."""
    tokens = sum(count for _, count in events)
    return StreamRow(
        row=1,
        prompt_id="p",
        token_ids=tuple(range(tokens)),
        events=tuple(TokenEvent(at, count, place in coalesced) for place, (at, count) in enumerate(events)),
        text="",
        finish_reason="length",
        usage=Usage(1, tokens, 0),
        prompt_token_ids=(1,),
        models=("m",),
        clock=RowClock("kernel", 100, 200, 300, 400),
        faults=() if fault is None else ((fault, ""),),
    )


def evenly(tokens: int, gap_ns: int = GAP_NS, size: int = 1) -> list[tuple[int, int]]:
    return [(1000 + gap_ns * place, size) for place in range(tokens // size)]


def test_the_conventional_rate_counts_ninety_nine_intervals() -> None:
    row = row_of(evenly(128))
    assert rate_of_row(row, CONVENTIONAL) == Fraction(99 * 10**9, 99 * GAP_NS)


def test_the_legacy_rate_counts_one_hundred_over_the_same_time() -> None:
    row = row_of(evenly(128))
    legacy, conventional = rate_of_row(row, MetricId.DECODE_RATE_LEGACY_100_1_100), rate_of_row(row, CONVENTIONAL)
    assert legacy is not None
    assert conventional is not None
    assert legacy / conventional == Fraction(100, 99)


def test_the_chunked_rate_leaves_out_the_first_event_and_ends_at_the_event_of_token_one_hundred() -> None:
    row = row_of(evenly(128, size=8))
    assert rate_of_row(row, MetricId.DECODE_RATE_CHUNKED_1_100) == Fraction((104 - 8) * 10**9, 12 * GAP_NS)


def test_the_full_and_the_wall_rate_go_to_the_last_token() -> None:
    row = row_of(evenly(10))
    assert rate_of_row(row, MetricId.DECODE_RATE_FULL) == Fraction(9 * 10**9, 9 * GAP_NS)
    assert rate_of_row(row, MetricId.WALL_RATE) == Fraction(10 * 10**9, 1000 + 9 * GAP_NS - 200)


@pytest.mark.parametrize("metric", [CONVENTIONAL, MetricId.DECODE_RATE_CHUNKED_1_100])
def test_a_row_of_ninety_nine_tokens_has_no_rate_over_one_hundred(metric: MetricId) -> None:
    assert rate_of_row(row_of(evenly(99)), metric) is None
    assert rate_of_row(row_of(evenly(100)), metric) is not None


@pytest.mark.parametrize("metric", list(MetricId))
def test_a_row_with_a_fault_or_without_time_has_no_rate(metric: MetricId) -> None:
    assert rate_of_row(row_of(evenly(128), RowFault.CLOCK_STEP), metric) is None
    assert rate_of_row(row_of([]), metric) is None
    if metric is not MetricId.WALL_RATE:
        assert rate_of_row(row_of(evenly(128, gap_ns=0)), metric) is None


def test_a_headline_is_the_median_and_needs_every_row() -> None:
    rows = [row_of(evenly(128, gap)) for gap in (10, 30, 20)]
    assert headline(rows, CONVENTIONAL) == Fraction(10**9, 20)
    assert headline([*rows, row_of(evenly(128), RowFault.CLOCK_STEP)], CONVENTIONAL) is None
    assert headline([], CONVENTIONAL) is None


def test_the_first_token_is_counted_from_the_request_sent() -> None:
    assert first_token_ns(row_of(evenly(3))) == 800
    assert first_token_ns(row_of(evenly(3), RowFault.NO_DONE)) is None


def test_gaps_next_to_a_coalesced_event_are_no_measurement() -> None:
    events = [(0, 1), (10, 1), (30, 1), (30, 1), (70, 1), (120, 1)]
    row = row_of(events, coalesced=frozenset({2, 3}))
    figures = {one.name: one.value for one in row_figures("A1", row).figures}
    assert coalesced_tokens(row) == 2
    assert (figures["inter_event_latency_p50"], figures["inter_event_latency_max"]) == ("30", "50")


@pytest.mark.parametrize(("place", "answer"), [(0, True), (1, False), (98, False), (99, True), (100, False)])
def test_a_shared_read_matters_most_at_the_ends_of_the_window(place: int, answer: bool) -> None:
    assert has_late_end(row_of(evenly(128), coalesced=frozenset({place}))) is answer
    assert not has_late_end(row_of([]))


def test_the_figures_of_a_start_leave_out_invalid_rows_and_count_them() -> None:
    rows = (row_of(evenly(128, 10)), row_of(evenly(128, 20)), row_of(evenly(128), RowFault.SUSPENDED))
    figures = {one.name: one.value for one in start_headline("A1", rows, CONVENTIONAL).figures}
    assert (figures[CONVENTIONAL], figures["first_row"], figures["invalid_rows"]) == ("75000000", "100000000", "1")
    assert (figures["minimum"], figures["maximum"], figures["p10"]) == ("50000000", "100000000", "55000000")
    assert figures["sample_sd"].startswith("35355339.0593273")


def test_a_start_without_a_valid_row_still_has_its_counts() -> None:
    figures = {one.name: one.value for one in start_headline("A1", (), CONVENTIONAL).figures}
    assert figures == {"tokens": "0", "coalesced_tokens": "0", "invalid_rows": "0", "one_off_gap_rows": "0"}


def with_gap(gap_ns: int, after: int = 3) -> StreamRow:
    """A row of steady events that stands still once."""
    events = [(at + (gap_ns - GAP_NS if place >= after else 0), 1) for place, (at, _) in enumerate(evenly(128))]
    return row_of(events)


def test_a_gap_like_no_other_is_found_and_its_place_named() -> None:
    assert one_off_gap(with_gap(11_400_000_000)) == OneOffGap(3, 11_400_000_000)
    assert one_off_gap(with_gap(ONE_OFF_TIMES * GAP_NS)) is None
    assert one_off_gap(with_gap(ONE_OFF_TIMES * GAP_NS + 1)) == OneOffGap(3, ONE_OFF_TIMES * GAP_NS + 1)
    assert one_off_gap(row_of([*evenly(3, gap_ns=1000), (1000 + 99_999_999, 1)])) is None
    assert one_off_gap(row_of([(1000, 1)])) is None


def test_the_steady_cycle_leaves_out_the_row_that_holds_one() -> None:
    steady, spoiled = row_of(evenly(128)), with_gap(11_400_000_000)
    assert steady_cycle_ms([steady, spoiled]) == steady_cycle_ms([steady]) == Fraction(GAP_NS, 10**6)
    assert steady_cycle_ms([spoiled]) is None
    assert steady_cycle_ms([row_of(evenly(128), RowFault.CLOCK_STEP)]) is None


def test_a_start_shows_both_conventions_and_the_first_row_apart() -> None:
    rows = (row_of(evenly(128, gap_ns=2 * GAP_NS)), row_of(evenly(128)), row_of(evenly(128)))
    figures = {one.name: Fraction(one.value) for one in start_headline("A1", rows, CONVENTIONAL).figures}
    assert figures["decode_rate_legacy_100_1_100"] / figures["decode_rate_conventional_1_100"] == Fraction(100, 99)
    assert figures["first_row"] == figures["without_first_row"] / 2
