"""Digits that a lab has published of its own campaigns, computed again by the formulas that judge sealed runs."""

from dataclasses import dataclass
from fractions import Fraction

import pytest

from labctl.analyze.figures import decimal_text, exact_text, gain_percent
from labctl.analyze.gates.decision import practical_floor
from labctl.analyze.gates.roofline import roofline_percent
from labctl.analyze.payload import Usage
from labctl.analyze.speculation import Speculation, cycle_ms
from labctl.analyze.stream import RowClock, StreamRow, TokenEvent
from labctl.analyze.timing import rate_of_row
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Decision

RECORD = "92.16352215694299"
A1, B1, B2, A2 = "92.54961760665958", "94.92003934159611", "95.06654837534518", "92.87797142677606"
LAST_DIGIT = Fraction(1, 10**13)
"""The lab computed in binary floating point; its last printed digit is its rounding's."""

GAINS = [
    ("headline gain of the first pair", B1, A1, "2.5612442236238477", LAST_DIGIT),
    ("headline gain of the second pair", B2, A2, "2.3564004628315667", LAST_DIGIT),
    ("gain of the lower candidate over the record", B1, RECORD, "2.990898264455555", LAST_DIGIT),
    ("the cache in 8 bit against 16 bit", "46.956936", "48.980858", "-4.132", Fraction(1, 2000)),
    ("speculation against none", "48.980858", "19.401885", "152.45", Fraction(1, 200)),
    ("memory of the primary worker", "27710099", "27708895", "0.0043", Fraction(1, 20000)),
]
SHARES = [
    ("16 bit cache, cold gate", 953, 1953, "48.797"),
    ("8 bit cache, cold gate", 960, 1932, "49.689"),
    ("performance interval", 551, 1596, "34.524"),
]


@dataclass(frozen=True)
class Counted:
    """Rounds, and what was accepted at each position in them, with the rates that were published."""

    drafts: int
    accepted: tuple[int, ...]
    survival_percent: tuple[str, ...]
    per_cycle: str


# The accepted counts follow from the printed rates: each is the only integer that rounds to it.
COUNTED = [
    Counted(
        279,
        (234, 187, 142, 121, 104, 86, 79),
        ("83.871", "67.025", "50.896", "43.369", "37.276", "30.824", "28.315"),
        "3.4158",
    ),
    Counted(
        228,
        (159, 115, 86, 65, 50, 43, 33),
        ("69.737", "50.439", "37.719", "28.509", "21.930", "18.860", "14.474"),
        "2.4167",
    ),
]
PROPOSED_A_ROUND = 7


def row_over(span_ns: int) -> StreamRow:
    """A row whose first 100 tokens come over a span of time."""
    times = (*range(99), span_ns)
    return StreamRow(
        row=1,
        prompt_id="p",
        token_ids=tuple(range(100)),
        events=tuple(TokenEvent(at, 1, is_coalesced=False) for at in times),
        text="",
        finish_reason="length",
        usage=Usage(1, 100, 0),
        prompt_token_ids=(1,),
        models=("m",),
        clock=RowClock("kernel", 0, 0, 0, span_ns),
        faults=(),
    )


@pytest.mark.parametrize(("what", "candidate", "control", "published", "within"), GAINS)
def test_a_published_gain_is_what_its_own_figures_give(
    what: str, candidate: str, control: str, published: str, within: Fraction
) -> None:
    gain = gain_percent(Fraction(candidate), Fraction(control))
    assert abs(gain - Fraction(published)) <= within, f"{what}: {decimal_text(gain)}"


def test_the_one_published_gain_that_does_not_follow_stays_computed() -> None:
    gain = gain_percent(Fraction("48.980858"), Fraction("19.401885"))
    assert decimal_text(gain).startswith("152.45")
    assert abs(gain - Fraction("151.68")) > Fraction(3, 4)


def test_the_practical_floor_is_the_exact_product_and_was_exceeded() -> None:
    decision = Decision(
        headline=MetricId.DECODE_RATE_LEGACY_100_1_100,
        reported_value="lower_candidate_start",
        record_to_beat=RECORD,
        floor_over_record_percent="0.25",
    )
    floor = practical_floor(decision)
    assert floor == Fraction(RECORD) * Fraction("1.0025")
    assert decimal_text(floor).startswith("92.39393096")
    assert min(Fraction(B1), Fraction(B2)) > floor


def test_the_lower_start_is_reported_and_stands_above_the_higher_control() -> None:
    assert min(Fraction(B1), Fraction(B2)) == Fraction(B1)
    assert Fraction(B1) > max(Fraction(A1), Fraction(A2))


@pytest.mark.parametrize(
    ("conventional", "legacy"), [("95.019301665", "95.979092591"), ("95.818681878", "96.786547352")]
)
def test_both_conventions_of_one_start_are_a_hundred_to_ninety_nine(conventional: str, legacy: str) -> None:
    span_ns = round(99 * 10**9 / Fraction(conventional))
    row = row_over(span_ns)
    rates = [
        rate_of_row(row, metric)
        for metric in (MetricId.DECODE_RATE_CONVENTIONAL_1_100, MetricId.DECODE_RATE_LEGACY_100_1_100)
    ]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[1] / rates[0] == Fraction(100, 99)
    assert round(rates[0], 6) == round(Fraction(conventional), 6)
    assert round(rates[1], 6) == round(Fraction(legacy), 6)


@pytest.mark.parametrize(("what", "accepted", "proposed", "published"), SHARES)
def test_a_published_acceptance_is_its_own_counts(what: str, accepted: int, proposed: int, published: str) -> None:
    rate = Speculation(Fraction(1), Fraction(proposed), Fraction(accepted)).acceptance_rate
    assert rate is not None
    assert round(100 * rate, 3) == Fraction(published), what


@pytest.mark.parametrize("counted", COUNTED, ids=lambda counted: counted.per_cycle)
def test_published_survival_and_cycles_are_their_own_counts(counted: Counted) -> None:
    accepted = sum(counted.accepted)
    drafts = Fraction(counted.drafts)
    found = Speculation(drafts, PROPOSED_A_ROUND * drafts, Fraction(accepted), tuple(map(Fraction, counted.accepted)))
    assert [round(100 * share, 3) for share in found.survival] == [*map(Fraction, counted.survival_percent)]
    assert found.accepted_per_cycle is not None
    assert found.emitted_per_cycle is not None
    assert round(found.accepted_per_cycle, 4) == Fraction(counted.per_cycle)
    assert found.emitted_per_cycle == 1 + found.accepted_per_cycle


@pytest.mark.parametrize(("limit", "published"), [("420", "11.66"), ("515", "9.51")])
def test_a_published_share_of_the_roofline_is_its_own_speed(limit: str, published: str) -> None:
    assert round(roofline_percent(Fraction("48.980858"), Fraction(limit)), 2) == Fraction(published)


def test_the_8_bit_cache_accepted_slightly_more_a_cycle() -> None:
    found = Speculation(Fraction(1932, PROPOSED_A_ROUND), Fraction(1932), Fraction(960))
    assert found.emitted_per_cycle is not None
    assert round(found.emitted_per_cycle, 4) == Fraction("4.4783")


def test_a_cache_of_twice_the_tokens_is_a_ratio_of_two() -> None:
    assert exact_text(Fraction(221_990, 110_995)) == "2"


def test_a_cycle_is_the_servers_decode_time_over_its_rounds() -> None:
    assert decimal_text(cycle_ms(Fraction("61.35968477500137"), Fraction(1609))) == "38.1352919671"
