"""A comparison may differ between its arms: each arm must equal itself, and every difference is a figure."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.gates.exact_text import judge_exact_text
from labctl.analyze.gates.exact_within_arms import judge_exact_within_arms
from labctl.analyze.load import load_evidence
from labctl.analyze.verdict import exit_code_of
from labctl.frozen import canonical_json
from labctl.prereg.answer_gates import ExactText, ExactWithinArms
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from labctl.report.text import render_report, summarize
from tests.fakes.run_builder import RunBuilder
from tests.fakes.two_verdicts import both

Spoil = Callable[[RunBuilder], object]
GATES: tuple[dict[str, object], ...] = (
    {"kind": "exact_within_arms"},
    {"kind": "cold", "cached_tokens": 0, "requests_per_start": 2},
    {"kind": "accounting"},
    {"kind": "clean_log", "unknown_environment": "fail"},
)
DECISION = {"headline": "decode_rate_conventional_1_100", "reported_value": "lower_candidate_start"}


def comparison(*, stops: bool = False) -> RunBuilder:
    """Arms that differ in tokens, cache, memory and drafts; each start equals the other of its arm."""
    said = {"class": "comparison", "gates": list(GATES), "decision": DECISION | NO_RECORD}
    builder = RunBuilder(stops=stops, packet={"preregistration": said})
    for leg in builder.legs:
        is_candidate = leg.name[0] == "B"
        blocks = "200" if is_candidate else "100"
        leg.before["cache_config"] = leg.after["cache_config"] = {"num_gpu_blocks": blocks, "block_size": "16"}
        leg.telemetry = canonical_json({"row": 1, "server_rss_bytes": 3000 if is_candidate else 2000})
        if is_candidate:
            leg.rows[1].ids[11] = 499
            leg.after["accepted_per_position"] = [30.0, 15.0, 4.0, 1.0]
            leg.after["accepted_tokens"] = 50.0
    return builder


NO_RECORD = {"record_to_beat": None, "floor_over_record_percent": None}


def values(verdict: Verdict) -> dict[tuple[str, str], str]:
    return {(one.name, one.where): one.value for one in verdict.effect}


def test_arms_that_differ_are_measured_and_every_difference_is_a_figure_of_both_analyzers(tmp_path: Path) -> None:
    one, other = both(comparison(), tmp_path)
    assert (one.verdict, exit_code_of(one)) == (VerdictKind.COMPARISON_MEASURED, 0)
    assert disagreements(one, other) == ()
    for verdict in (one, other):
        found = values(verdict)
        assert {place: found[place] for place in EXPECTED} == EXPECTED
        assert ("first_difference", "row 1") not in found


EXPECTED = {
    ("kv_capacity_tokens", "A"): "1600",
    ("kv_capacity_tokens", "B"): "3200",
    ("kv_capacity_ratio", "B vs A"): "2",
    ("resident_bytes", "A"): "2000",
    ("resident_bytes_difference", "B vs A"): "1000",
    ("resident_bytes_gain", "B vs A"): "50",
    ("acceptance_rate", "B"): "1/8",
    ("accepted_per_cycle", "B"): "1/2",
    ("emitted_per_cycle", "B"): "3/2",
    ("survival_0", "B"): "3/10",
    ("survival_3", "B"): "1/100",
    ("first_difference", "row 2"): "11",
    ("differing_rows", "B vs A"): "1",
}


@pytest.mark.parametrize("name", ["A2", "B2"])
def test_a_start_that_differs_from_its_own_arm_fails_exactly_that_gate(name: str, tmp_path: Path) -> None:
    builder = comparison()
    builder.leg(name).rows[0].ids[7] = 498
    for verdict in both(builder, tmp_path):
        failed = [gate.id for gate in verdict.gates if gate.result is GateResult.FAILED]
        assert failed == ["exact_within_arms"]
        assert verdict.verdict is VerdictKind.DIAGNOSTIC_NOT_EXACT


def test_one_start_of_an_arm_proves_nothing(tmp_path: Path) -> None:
    said = {"class": "comparison", "gates": list(GATES), "decision": DECISION | NO_RECORD}
    builder = RunBuilder(order=("A1", "B1"), stops=False, packet={"preregistration": said})
    for verdict in both(builder, tmp_path):
        (gate,) = (gate for gate in verdict.gates if gate.id == "exact_within_arms")
        assert gate.result is GateResult.NOT_EVALUATED
        assert verdict.verdict is VerdictKind.INVALID


def test_an_arm_holds_what_the_smallest_of_its_starts_holds(tmp_path: Path) -> None:
    builder = comparison()
    builder.leg("B2").after["cache_config"] = {"num_gpu_blocks": "150", "block_size": "16"}
    for verdict in both(builder, tmp_path):
        found = values(verdict)
        assert (found["kv_capacity_tokens", "B"], found["kv_capacity_ratio", "B vs A"]) == ("2400", "3/2")


def test_rows_of_equal_tokens_that_end_otherwise_differ_without_a_first_difference(tmp_path: Path) -> None:
    builder = comparison()
    for name in ("B1", "B2"):
        builder.leg(name).rows[0].finish = "stop"
    for verdict in both(builder, tmp_path):
        found = values(verdict)
        assert found["differing_rows", "B vs A"] == "2"
        assert ("first_difference", "row 1") not in found


def test_a_phase_stop_does_not_wait_for_the_second_start_of_an_arm(tmp_path: Path) -> None:
    for verdict in both(comparison(stops=True), tmp_path):
        assert verdict.verdict is VerdictKind.COMPARISON_MEASURED


def test_what_cannot_be_looked_at_gives_no_figure(tmp_path: Path) -> None:
    builder = comparison()
    builder.leg("B2").telemetry = None
    builder.leg("A1").before["cache_config"] = builder.leg("A1").after["cache_config"] = None
    one, other = both(builder, tmp_path)
    assert disagreements(one, other) == ()
    names = {name for name, _ in values(one)}
    assert names & {"resident_bytes_difference", "kv_capacity_ratio"} == set()
    assert ("resident_bytes", "A") in values(one)


def test_a_report_says_what_differs_before_any_gate(tmp_path: Path) -> None:
    one, _ = both(comparison(), tmp_path)
    report = render_report(one)
    assert "exactness did not pass" not in report
    assert report.index("## What differs") < report.index("## Gates")
    for line in (
        "tokens that the cache holds: 2 times (B vs A)",
        "resident memory: +50 % (B vs A)",
        "rows that differ: 1 of 2 rows (B vs A)",
        "first difference, from 0: row 2 at token 11",
    ):
        assert line in summarize(one)
        assert f"- {line}" in report


def test_other_classes_have_no_figures_of_a_comparison(tmp_path: Path) -> None:
    for verdict in both(RunBuilder(stops=False), tmp_path):
        assert {name for name, _ in values(verdict)} & {name for name, _ in EXPECTED} == set()


def test_without_counters_there_is_no_figure_of_speculation(tmp_path: Path) -> None:
    builder = comparison()
    builder.removed.add("legs/03-B2/metrics-after.prom")
    for verdict in both(builder, tmp_path):
        assert "acceptance_rate" not in {name for name, _ in values(verdict)}
        assert verdict.verdict is VerdictKind.INVALID


def test_one_arm_is_held_against_itself(tmp_path: Path) -> None:
    said = {"gates": list(GATES), "treatment": None, "decision": None}
    builder = RunBuilder(order=("A1", "A2"), stops=False, packet={"preregistration": said})
    for verdict in both(builder, tmp_path):
        assert results(verdict)["exact_within_arms"] is GateResult.PASSED


def test_starts_without_a_row_are_exact_in_nothing(tmp_path: Path) -> None:
    evidence = load_evidence(comparison().seal(tmp_path))
    bare = replace(evidence, legs=tuple(replace(leg, rows=()) for leg in evidence.legs))
    for outcome in (
        judge_exact_within_arms(bare, ExactWithinArms(kind="exact_within_arms")),
        judge_exact_text(bare, ExactText(kind="exact_text")),
    ):
        assert outcome.result is GateResult.NOT_EVALUATED
        assert "no row was measured" in outcome.reason


TEXT_GATES: tuple[dict[str, object], ...] = ({"kind": "exact_text"}, {"kind": "cross_leg_exact"}, *GATES[1:])
TOKENS = frozenset({"token_ids", "prompt_token_ids_sha256", "finish_reason"})


def taught_text(*gates: dict[str, object], untold: frozenset[str] = TOKENS) -> RunBuilder:
    builder = RunBuilder(stops=False, untold=untold)
    builder.packet = {"preregistration": {"gates": list(gates or TEXT_GATES)}}
    return builder


def results(verdict: Verdict) -> dict[str, GateResult]:
    return {gate.id: gate.result for gate in verdict.gates}


def test_a_teacher_of_texts_alone_is_held_against_the_text(tmp_path: Path) -> None:
    one, other = both(taught_text(), tmp_path)
    assert disagreements(one, other) == ()
    assert one.verdict is VerdictKind.EXPLORATORY_PASS
    (gate,) = (gate for gate in other.gates if gate.id == "exact_text")
    assert [figure.value for figure in gate.figures] == ["2"] * 4


def test_another_text_fails_and_keeps_speed_from_being_looked_at(tmp_path: Path) -> None:
    builder = taught_text({"kind": "exact_text"}, *GATES[1:])
    for leg in builder.legs:
        leg.rows[1].ids[5] = 499
    for verdict in both(builder, tmp_path):
        assert results(verdict)["exact_text"] is GateResult.FAILED
        assert verdict.verdict is VerdictKind.DIAGNOSTIC_NOT_EXACT
        assert verdict.reported_value is None


@pytest.mark.parametrize(
    "gate",
    [
        {"kind": "exact_tokens"},
        {"kind": "long_then_next"},
        {"kind": "rollover", "min_prompt_tokens": 6},
        {"kind": "moving_difference"},
    ],
)
def test_a_gate_over_tokens_says_that_a_teacher_of_texts_holds_none(gate: dict[str, object], tmp_path: Path) -> None:
    for verdict in both(taught_text(gate, *GATES[1:]), tmp_path):
        (outcome,) = (one for one in verdict.gates if one.id == gate["kind"])
        assert outcome.result is GateResult.NOT_EVALUATED
        assert "token ids" in outcome.reason
        assert verdict.verdict is VerdictKind.INVALID


def test_a_teacher_of_tokens_alone_is_held_against_the_tokens(tmp_path: Path) -> None:
    untold = frozenset({"text_sha256", "prompt_token_ids_sha256", "finish_reason"})
    one, other = both(taught_text({"kind": "exact_tokens"}, *GATES[1:], untold=untold), tmp_path / "sound")
    assert disagreements(one, other) == ()
    assert one.verdict is VerdictKind.EXPLORATORY_PASS
    spoiled = taught_text({"kind": "exact_tokens"}, *GATES[1:], untold=untold)
    spoiled.leg("B2").rows[0].ids[3] = 499
    for verdict in both(spoiled, tmp_path / "spoiled"):
        assert results(verdict)["exact_tokens"] is GateResult.FAILED


def test_text_is_not_judged_by_a_teacher_of_tokens(tmp_path: Path) -> None:
    untold = frozenset({"text_sha256"})
    for verdict in both(taught_text(untold=untold), tmp_path):
        assert results(verdict)["exact_text"] is GateResult.NOT_EVALUATED
