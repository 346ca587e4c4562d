"""A record lane as one lab ran it: four starts, a record to beat, a practical floor, and graphs that must change."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from tests.fakes.run_builder import RunBuilder
from tests.fakes.two_verdicts import both

Spoil = Callable[[RunBuilder], object]
RECORD = "92.16352215694299"
PUBLISHED = {"A1": "92.54961760665958", "B1": "94.92003934159611", "B2": "95.06654837534518", "A2": "92.87797142677606"}
LEGACY = "decode_rate_legacy_100_1_100"
PATTERN = (
    "rank (?P<rank>[0-9]+): (?:captured|replayed) graphs=(?P<graphs>[0-9]+), eager_breaks=(?P<eager_breaks>[0-9]+)"
)
TOPOLOGY = {"A": {"graphs": 146, "eager_breaks": 145}, "B": {"graphs": 145, "eager_breaks": 144}}
RANKS, ROWS = 4, 13
STATISTICS = (
    {"kind": "drift", "max_percent": "1"},
    {"kind": "consistency", "min_row_wins": 12, "confidence": "0.95"},
    {"kind": "separation", "margin_percent": "1"},
    {"kind": "effect", "margin_percent": "0", "confidence": "0.95"},
)


def graphs(arm: str) -> bytes:
    """What every rank prints of its graphs."""
    shown = ", ".join(f"{name}={count}" for name, count in TOPOLOGY[arm].items())
    return b"".join(
        f"rank {rank}: {event} {shown}\n".encode() for rank in range(RANKS) for event in ("captured", "replayed")
    )


def gap_ns(leg: str, speed: Fraction) -> int:
    """The gap between events of a start of that speed: a control's event brings a token, a candidate's two."""
    events = 99 if leg[0] == "A" else 50
    return round(100 * 10**9 / (speed * events))


def lane(speeds: dict[str, str] | None = None) -> RunBuilder:
    """Four starts at these speeds; rows of a start differ by next to nothing."""
    required = {"pattern": PATTERN, "example": "rank 0: captured graphs=146, eager_breaks=145", "count": 2}
    required |= {"ranks": RANKS, "control": TOPOLOGY["A"], "candidate": TOPOLOGY["B"]}
    pair = {"kind": "pair", "metric": LEGACY, "min_row_wins": 12, "min_headline_gain_percent": "0.25"}
    gates = [
        *({"kind": "exact_tokens"}, {"kind": "cross_leg_exact"}, {"kind": "accounting"}),
        {"kind": "cold", "cached_tokens": 0, "requests_per_start": ROWS},
        {"kind": "clean_log", "unknown_environment": "fail", "require": [required]},
        *({"kind": "long_then_next"}, pair, {"kind": "control_near", "reference": RECORD, "within_percent": "2"}),
        *STATISTICS,
    ]
    decision = {"headline": LEGACY, "record_to_beat": RECORD, "floor_over_record_percent": "0.25"}
    said = {"class": "record", "gates": gates, "decision": decision}
    builder = RunBuilder(prompts=ROWS, stops=False, packet={"preregistration": said})
    for leg in builder.legs:
        leg.log += graphs(leg.name[0])
        gap = gap_ns(leg.name, Fraction((speeds or PUBLISHED)[leg.name]))
        for number, row in enumerate(leg.rows):
            row.gap_ns = gap + number - ROWS // 2
    return builder


def results(verdict: Verdict, wanted: GateResult) -> list[str]:
    return [gate.id for gate in verdict.gates if gate.result is wanted]


def test_the_published_speeds_make_a_record_and_the_lower_start_is_reported(tmp_path: Path) -> None:
    one, other = both(lane(), tmp_path)
    assert disagreements(one, other) == ()
    assert [gate.reason for gate in one.gates if gate.reason] == []
    for verdict in (one, other):
        assert verdict.verdict is VerdictKind.RECORD_CANDIDATE
        assert verdict.reported_value is not None
        assert round(Fraction(verdict.reported_value.value), 5) == round(Fraction(PUBLISHED["B1"]), 5)
        floor = [one.value for gate in verdict.gates for one in gate.figures if one.name == "practical_floor"]
        assert [Fraction(value) for value in floor] == [Fraction(RECORD) * Fraction("1.0025")]


def same_graphs(name: str, arm: str) -> Spoil:
    return lambda builder: setattr(
        builder.leg(name), "log", builder.leg(name).log.replace(graphs(name[0]), graphs(arm))
    )


def one_rank_less(builder: RunBuilder) -> None:
    leg = builder.leg("B2")
    leg.log = leg.log.replace(b"rank 3: replayed graphs=145, eager_breaks=144\n", b"")


@pytest.mark.parametrize("spoil", [same_graphs("B1", "A"), same_graphs("A2", "B"), one_rank_less])
def test_graphs_that_did_not_change_as_registered_fail_exactly_the_log(spoil: Spoil, tmp_path: Path) -> None:
    builder = lane()
    spoil(builder)
    for verdict in both(builder, tmp_path):
        assert results(verdict, GateResult.FAILED) == ["clean_log"]
        assert verdict.verdict is VerdictKind.NEGATIVE_OR_INCONCLUSIVE


def test_the_floor_itself_is_not_beaten_by_one_start_of_two(tmp_path: Path) -> None:
    near = {**PUBLISHED, "A1": "90.5", "A2": "90.52", "B1": "92.39", "B2": "92.45"}
    for verdict in both(lane(near), tmp_path):
        assert results(verdict, GateResult.FAILED) == ["decision"]
        assert verdict.verdict is VerdictKind.BELOW_PRACTICAL_FLOOR


def test_two_more_starts_of_one_arm_confirm_a_speed_in_its_own_metric(tmp_path: Path) -> None:
    near = {"kind": "control_near", "metric": "decode_rate_conventional_1_100", "within_percent": "1"}
    for reference, expected in (("95.4", GateResult.PASSED), ("96.5", GateResult.FAILED)):
        for verdict in both(confirmation({**near, "reference": reference}), tmp_path / reference):
            assert {gate.id: gate.result for gate in verdict.gates}["control_near"] is expected
            is_pass = expected is GateResult.PASSED
            kind = VerdictKind.EXPLORATORY_PASS if is_pass else VerdictKind.NEGATIVE_OR_INCONCLUSIVE
            assert verdict.verdict is kind


def confirmation(near: dict[str, object]) -> RunBuilder:
    """Two starts of one arm, at the conventional speeds that a lab has published of its confirmation."""
    gates = [
        *({"kind": "exact_tokens"}, {"kind": "cross_leg_exact"}, {"kind": "accounting"}),
        *({"kind": "cold", "cached_tokens": 0, "requests_per_start": 2}, near),
    ]
    said = {"gates": gates, "treatment": None, "decision": None}
    builder = RunBuilder(order=("A1", "A2"), stops=False, packet={"preregistration": said})
    for leg, speed in zip(builder.legs, ("95.019301665", "95.818681878"), strict=True):
        for row in leg.rows:
            row.gap_ns = round(10**9 / Fraction(speed))
    return builder
