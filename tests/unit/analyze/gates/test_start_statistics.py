"""Gates over whole starts: each fails alone on a run that is spoiled in one way, and both analyzers say so."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.gates.drift import drift_limit_percent
from labctl.analyze.gates.judge import OF_ALL_STARTS, STAGES, TIMING
from labctl.analyze.gates.separation import separation_margin_percent
from labctl.analyze.gates.start_statistics import judge_statistics
from labctl.analyze.speeds import run_speeds
from labctl.prereg.field_types import MetricId
from labctl.prereg.statistics_gates import (
    Consistency,
    Drift,
    Effect,
    Equivalence,
    Separation,
    StatisticsGate,
    record_rules,
)
from labctl.records.verdict import GateResult, VerdictKind
from labctl.standalone import analyze_run as standalone
from tests.fakes.run_builder import GATES, RunBuilder
from tests.fakes.speeds import Speeds, evidence_with_speeds
from tests.fakes.two_verdicts import both

FULL = MetricId.DECODE_RATE_FULL
ROWS = 6
STARTS = (
    {"kind": "drift", "max_percent": "1"},
    {"kind": "consistency", "min_row_wins": ROWS},
    {"kind": "separation", "margin_percent": "0.5"},
    {"kind": "effect"},
)
A_NS = 1_000_000
"""Of a control, from token to token."""
Gains = Mapping[str, float]


def run_with(gains: Gains, *more: dict[str, object]) -> RunBuilder:
    """Six rows a start; each start is faster than 1,000 tokens/s by so many percent, give or take its own rows."""
    gates = json.loads(json.dumps([*GATES[:6], *STARTS, *more]))
    gates[2]["requests_per_start"] = ROWS
    gates[5]["min_headline_gain_percent"] = "-50"
    decision = {"record_to_beat": "1", "floor_over_record_percent": "0"}
    builder = RunBuilder(
        tuple(gains), prompts=ROWS, stops=False, packet={"preregistration": {"gates": gates, "decision": decision}}
    )
    for leg in builder.legs:
        for number, row in enumerate(leg.rows):
            # A candidate's event holds two tokens, so that 100 of them take 50 gaps.
            token_ns = A_NS / (1 + gains[leg.name] / 100) * (1 + number / 10_000)
            row.gap_ns = round(token_ns if leg.name[0] == "A" else token_ns * 1.98)
    return builder


SOUND: Gains = {"A1": 0.0, "B1": 3.0, "B2": 3.1, "A2": 0.05}


def lose_a_row(builder: RunBuilder) -> None:
    builder.leg("B1").rows[0].gap_ns = round(A_NS * 1.98 * 1.001)
    builder.leg("B2").rows[0].gap_ns = round(A_NS * 1.98 * 0.9)


def keep(_: RunBuilder) -> None:
    """Spoil nothing."""


CASES: list[tuple[str | None, Gains, Callable[[RunBuilder], None], tuple[dict[str, object], ...]]] = [
    (None, SOUND, keep, ()),
    ("drift", {**SOUND, "B2": 4.5}, keep, ()),
    ("consistency", SOUND, lose_a_row, ()),
    ("separation", {"A1": 0.0, "B1": 0.4, "B2": 0.41, "A2": 0.01}, keep, ()),
    ("effect", {"A1": 0.0, "B1": 1.5, "B2": 2.4, "A2": 0.9}, keep, ()),
    ("equivalence", SOUND, keep, ({"kind": "equivalence", "within_percent": "2"},)),
    (None, SOUND, keep, ({"kind": "equivalence", "within_percent": "5"},)),
]


@pytest.mark.parametrize(("kind", "gains", "spoil", "more"), CASES)
def test_each_gate_fails_alone_and_both_analyzers_say_so(
    kind: str | None,
    gains: Gains,
    spoil: Callable[[RunBuilder], None],
    more: tuple[dict[str, object], ...],
    tmp_path: Path,
) -> None:
    builder = run_with(gains, *more)
    spoil(builder)
    one, other = both(builder, tmp_path)
    assert [gate.kind for gate in one.gates if gate.result is not GateResult.PASSED] == ([kind] if kind else [])
    assert one.verdict is (VerdictKind.NEGATIVE_OR_INCONCLUSIVE if kind else VerdictKind.EXPLORATORY_PASS)
    assert disagreements(one, other) == ()


def test_both_analyzers_know_every_exact_figure_of_what_may_be_concluded(tmp_path: Path) -> None:
    one, other = both(run_with(SOUND), tmp_path)
    names = {figure.name for figure in other.effect}
    assert names >= {
        *("sign_test_p", "sign_flip_count", "sign_flip_p", "start_permutation_count", "start_permutation_p"),
        *("hodges_lehmann_log", "hodges_lehmann_lower_log", "hodges_lehmann_upper_log", "hodges_lehmann_coverage"),
        *("median_row_log", "median_row_lower_log", "median_row_upper_log", "effect_log"),
    }
    assert names <= {figure.name for figure in one.effect}


def test_margins_follow_from_the_planned_effect_in_both_analyzers(tmp_path: Path) -> None:
    builder = run_with(SOUND)
    power = {"noise_record": "noise/bench.json", "planned_effect_percent": "5.8", "alpha": "0.05", "power": "0.8"}
    preregistration = builder.packet["preregistration"]
    assert isinstance(preregistration, dict)
    gates = preregistration["gates"]
    gates[:] = [
        {key: value for key, value in gate.items() if not key.startswith(("max_p", "margin"))} for gate in gates
    ]
    preregistration["power"] = power
    one, other = both(builder, tmp_path)
    # The starts lie 2.95 % apart, half of the planned effect is 2.9; the controls differ by 0.05, the bound is 1.
    assert [gate.kind for gate in one.gates if gate.result is not GateResult.PASSED] == []
    assert disagreements(one, other) == ()
    preregistration["power"] = {**power, "planned_effect_percent": "6"}
    failed = both(builder, tmp_path / "again")
    assert [gate.kind for gate in failed[0].gates if gate.result is GateResult.FAILED] == ["separation"]
    assert disagreements(*failed) == ()


def test_default_bounds_are_half_of_the_planned_effect_and_one_percent_at_most() -> None:
    drift, separation, *_ = Drift(kind="drift"), Separation(kind="separation")
    assert [drift_limit_percent(drift, planned) for planned in (None, 1, 2, 9)] == [None, 0.5, 1, 1]  # type: ignore[arg-type] # whole percents
    assert [separation_margin_percent(separation, planned) for planned in (None, 1, 9)] == [None, 0.5, 4.5]  # type: ignore[arg-type] # the same
    assert separation_margin_percent(Separation(kind="separation", margin_percent="0"), None) == 0


def test_the_default_rules_for_records_are_the_four() -> None:
    assert [gate.kind for gate in record_rules()] == ["drift", "consistency", "separation", "effect"]


def judged(gate: StatisticsGate, **speeds: Speeds) -> GateResult:
    return judge_statistics(run_speeds(evidence_with_speeds(**speeds), FULL), gate, None).result


EVERY: tuple[StatisticsGate, ...] = (
    Drift(kind="drift", max_percent="60"),
    Consistency(kind="consistency", min_row_wins=1, confidence="0.5"),
    Separation(kind="separation", margin_percent="0"),
    Effect(kind="effect"),
    Equivalence(kind="equivalence", within_percent="900"),
)


@pytest.mark.parametrize("gate", EVERY, ids=lambda gate: gate.kind)
def test_a_start_or_a_row_that_lacks_leaves_nothing_to_judge(gate: StatisticsGate) -> None:
    assert judged(gate, A1=100, B1=200, B2=250, A2=125) is GateResult.PASSED
    for spoiled in ({"A2": [100, None]}, {"B2": [None, 250]}):
        speeds: dict[str, Speeds] = {"A1": 100, "B1": 200, "B2": 250, "A2": 125, **spoiled}
        assert judged(gate, **speeds) is GateResult.NOT_EVALUATED
    assert judged(gate, A1=100, A2=125) is GateResult.NOT_EVALUATED


@pytest.mark.parametrize("gate", [Effect(kind="effect"), Equivalence(kind="equivalence", within_percent="50")])
def test_bounds_need_starts_that_repeat_and_vary(gate: StatisticsGate) -> None:
    assert judged(gate, A1=100, B1=125) is GateResult.NOT_EVALUATED
    assert judged(gate, A1=100, B1=125, B2=125, A2=100) is GateResult.NOT_EVALUATED


@pytest.mark.parametrize("rows", [5, 129])
def test_too_few_or_too_many_rows_give_no_interval(rows: int) -> None:
    speeds: dict[str, Speeds] = {"A1": [100] * rows, "B1": [200] * rows, "B2": [250] * rows, "A2": [125] * rows}
    gate = Consistency(kind="consistency", min_row_wins=1)
    assert judged(gate, **speeds) is GateResult.NOT_EVALUATED


def test_limits_are_met_to_the_last_digit() -> None:
    speeds: dict[str, Speeds] = {"A1": 100, "B1": 200, "B2": 200, "A2": 125}
    assert judged(Drift(kind="drift", max_percent="25"), **speeds) is GateResult.PASSED
    assert judged(Drift(kind="drift", max_percent="24.999999999999999999999"), **speeds) is GateResult.FAILED
    assert judged(Separation(kind="separation", margin_percent="59.99999999999"), **speeds) is GateResult.PASSED
    assert judged(Separation(kind="separation", margin_percent="60"), **speeds) is GateResult.FAILED


def test_both_analyzers_stop_at_the_same_last_digit(tmp_path: Path) -> None:
    builder = run_with(SOUND)
    gates = builder.packet["preregistration"]["gates"]  # type: ignore[index] # a document
    next(gate for gate in gates if gate["kind"] == "separation")["margin_percent"] = "10"
    for leg in builder.legs:
        for row in leg.rows:  # controls 1 % apart, candidates 10 % above the faster one, all of it exactly
            row.gap_ns = {"A1": 1_111_000, "A2": 1_100_000}.get(leg.name, 1_980_000)
    one, other = both(builder, tmp_path)
    told = {gate.kind: gate.result for gate in one.gates}
    assert (told["drift"], told["separation"]) == (GateResult.PASSED, GateResult.FAILED)
    assert next(gate for gate in one.gates if gate.kind == "separation").figures[0].value == "10"
    assert disagreements(one, other) == ()


def test_a_tie_is_a_loss_for_both_analyzers(tmp_path: Path) -> None:
    builder = run_with(SOUND)
    builder.leg("A1").rows[0].gap_ns, builder.leg("B1").rows[0].gap_ns = 1_000_000, 1_980_000
    one, other = both(builder, tmp_path)
    (gate,) = (gate for gate in one.gates if gate.kind == "consistency")
    assert (gate.result, gate.figures[0].value) == (GateResult.FAILED, str(ROWS - 1))
    assert disagreements(one, other) == ()


def test_an_interval_that_ends_at_zero_is_not_above_it_for_both_analyzers(tmp_path: Path) -> None:
    builder = run_with(SOUND)
    gates = builder.packet["preregistration"]["gates"]  # type: ignore[index] # a document
    next(gate for gate in gates if gate["kind"] == "consistency")["min_row_wins"] = ROWS - 1
    for leg in builder.legs:
        leg.rows[0].gap_ns = 1_000_000 if leg.name[0] == "A" else 1_980_000
    one, other = both(builder, tmp_path)
    (gate,) = (gate for gate in one.gates if gate.kind == "consistency")
    assert (gate.result, gate.miss_count) == (GateResult.FAILED, 1)
    assert "Hodges-Lehmann interval: expected above 0" in gate.reason
    assert disagreements(one, other) == ()


def test_of_more_starts_the_first_and_the_last_of_each_arm_show_the_drift() -> None:
    speeds: dict[str, Speeds] = {"A1": 100, "B1": 200, "B2": 250, "A2": 125, "B3": 160, "A3": 80, "A4": 100, "B4": 200}
    assert judged(Drift(kind="drift", max_percent="0"), **speeds) is GateResult.PASSED
    assert judged(Drift(kind="drift", max_percent="1"), **{**speeds, "B4": 250}) is GateResult.FAILED


def test_a_bound_that_rounding_could_move_over_its_limit_is_not_judged() -> None:
    speeds = run_speeds(evidence_with_speeds(A1=100, B1=200, B2=250, A2=125), FULL)
    gate = Effect(kind="effect")
    outcome = judge_statistics(speeds, gate, None)
    assert outcome.result is GateResult.PASSED
    near = _bound_percent(speeds_of=(100, 200, 250, 125))
    assert judge_statistics(speeds, Effect(kind="effect", margin_percent=near), None).result is GateResult.NOT_EVALUATED


def _bound_percent(speeds_of: tuple[int, int, int, int]) -> str:
    """The bound of the effect to twelve digits, computed by hand."""
    import math

    a1, b1, b2, a2 = (math.log(speed) for speed in speeds_of)
    error = math.sqrt(((a2 - a1) ** 2 + (b2 - b1) ** 2) / 4)
    return f"{100 * math.expm1((b1 + b2 - a1 - a2) / 2 - 2.919985580353726 * error):.12f}"


def test_a_failed_effect_in_the_wrong_direction_is_a_negative_verdict(tmp_path: Path) -> None:
    one, other = both(run_with({"A1": 3.0, "B1": 0.0, "B2": 0.1, "A2": 3.05}), tmp_path)
    assert one.verdict is VerdictKind.NEGATIVE_OR_INCONCLUSIVE
    failed = {gate.kind for gate in one.gates if gate.result is GateResult.FAILED}
    assert failed == {"consistency", "separation", "effect", "pair"}
    assert disagreements(one, other) == ()


def test_after_a_phase_stop_no_gate_over_all_starts_is_looked_at(tmp_path: Path) -> None:
    builder = run_with(SOUND)
    builder.stops, builder.legs_written = True, 2
    builder.packet["preregistration"]["schedule"] = {"stop_after_first_pair": True}  # type: ignore[index] # a document
    builder.leg("B1").rows[1].ids[3] = 499
    one, other = both(builder, tmp_path)
    assert {gate.result for gate in one.gates if gate.kind in OF_ALL_STARTS} == {GateResult.NOT_EVALUATED}
    assert disagreements(one, other) == ()


def test_the_first_pair_alone_is_not_held_against_gates_over_all_starts(tmp_path: Path) -> None:
    builder = run_with(SOUND)
    builder.stops = True
    builder.packet["preregistration"]["schedule"] = {"stop_after_first_pair": True}  # type: ignore[index] # a document
    one, other = both(builder, tmp_path)
    assert one.verdict is VerdictKind.EXPLORATORY_PASS, one.because
    assert disagreements(one, other) == ()


EIGHT: Gains = {"A1": 0.0, "B1": 3.0, "B2": 3.1, "A2": 0.05, "B3": 2.9, "A3": 0.1, "A4": 0.0, "B4": 3.0}


@pytest.mark.parametrize(("record", "result"), [("1", GateResult.PASSED), ("1031", GateResult.FAILED)])
def test_both_analyzers_report_the_same_bound_of_eight_starts(record: str, result: GateResult, tmp_path: Path) -> None:
    builder = run_with(EIGHT)
    preregistration = builder.packet["preregistration"]
    assert isinstance(preregistration, dict)
    preregistration["decision"] |= {"reported_value": "confidence_bound", "record_to_beat": record}
    one, other = both(builder, tmp_path)
    assert {gate.kind: gate.result for gate in one.gates}["decision"] is result
    assert disagreements(one, other) == ()
    assert one.reported_value is not None
    assert 1028 < float(one.reported_value.decimal) < 1030


def test_both_analyzers_look_at_the_same_kinds_in_the_same_order() -> None:
    assert set(standalone.OF_ALL_STARTS) == OF_ALL_STARTS
    assert set(standalone.TIMING) == TIMING
    assert [set(stage) for stage in standalone.STAGES] == [set(stage) for stage in STAGES]
