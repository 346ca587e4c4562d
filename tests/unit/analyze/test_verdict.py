"""The table of verdicts, line by line, each from a sealed run that is spoiled in one place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.analyze.verdict import TABLE, exit_code_of
from labctl.packet.lane import lane_key
from labctl.packet.tool import analyzer_identity
from labctl.records.lane import Lane
from labctl.records.leg import StopCause
from labctl.records.run import AbortCause, Outcome, OutcomeKind
from labctl.records.verdict import Verdict, VerdictKind
from tests.fakes.run_builder import GATES, RunBuilder
from tests.fakes.run_records import MACHINE
from tests.fakes.two_verdicts import both

Spoil = Callable[[RunBuilder], object]


def judged(folder: Path, spoil: Spoil, campaign_class: str = "exploratory", **changes: object) -> Verdict:
    builder = RunBuilder(stops=False, packet={"preregistration": {"class": campaign_class}, **changes})
    spoil(builder)
    return analyze_run(builder.seal(folder), analyzer_identity())


def sound(_: RunBuilder) -> None:
    """Spoil nothing."""


def inexact(builder: RunBuilder) -> None:
    builder.leg("B2").rows[1].ids[40] = 499


def inexact_between_arms(builder: RunBuilder) -> None:
    for name in ("B1", "B2"):
        builder.leg(name).rows[1].ids[40] = 499


def slow(builder: RunBuilder) -> None:
    builder.leg("B2").rows[1].gap_ns = 2_100_000


def below_floor(builder: RunBuilder) -> None:
    decision = {"record_to_beat": "1410.5", "floor_over_record_percent": "0.25"}
    builder.packet = {"preregistration": {**_preregistration(builder), "decision": decision}}


def _preregistration(builder: RunBuilder) -> dict[str, object]:
    found = builder.packet["preregistration"]
    assert isinstance(found, dict)
    return found


def dirty_log(builder: RunBuilder) -> None:
    builder.leg("B2").log += b"kernel not compiled\n"


def invalid_control(builder: RunBuilder) -> None:
    builder.leg("A2").rows[0].clock_step_ns = 5_000_000


def lacking(builder: RunBuilder) -> None:
    builder.leg("B2").rows[0].cached_tokens = None


def other_argv(builder: RunBuilder) -> None:
    builder.leg("B2").observed_argv = lambda argv: (*argv, "--fast")


def aborted(builder: RunBuilder) -> None:
    builder.leg("B2").exit_cause = StopCause.STREAM
    builder.legs_written = 3
    detail = ("row 2: expected a complete response, got timeout",)
    builder.outcome = Outcome(
        outcome=OutcomeKind.ABORTED, cause=AbortCause.LEG_FAILED, detail=detail, legs_closed=("A1", "B1")
    )


def unwritable(builder: RunBuilder) -> None:
    aborted(builder)
    builder.outcome = Outcome(
        outcome=OutcomeKind.ABORTED, cause=AbortCause.EVIDENCE, detail=("disk full",), legs_closed=("A1", "B1")
    )


CASES: list[tuple[Spoil, str, VerdictKind, int]] = [
    (sound, "exploratory", VerdictKind.EXPLORATORY_PASS, 0),
    (sound, "record", VerdictKind.RECORD_CANDIDATE, 0),
    (sound, "calibration", VerdictKind.CALIBRATION, 0),
    (sound, "comparison", VerdictKind.COMPARISON_MEASURED, 0),
    (inexact, "exploratory", VerdictKind.DIAGNOSTIC_NOT_EXACT, 6),
    (inexact, "record", VerdictKind.DIAGNOSTIC_NOT_EXACT, 6),
    (inexact, "calibration", VerdictKind.CALIBRATION, 6),
    (inexact, "comparison", VerdictKind.DIAGNOSTIC_NOT_EXACT, 6),
    (inexact_between_arms, "comparison", VerdictKind.COMPARISON_MEASURED, 0),
    (inexact_between_arms, "record", VerdictKind.DIAGNOSTIC_NOT_EXACT, 6),
    (slow, "record", VerdictKind.NEGATIVE_OR_INCONCLUSIVE, 6),
    (slow, "comparison", VerdictKind.NEGATIVE_OR_INCONCLUSIVE, 6),
    (dirty_log, "record", VerdictKind.NEGATIVE_OR_INCONCLUSIVE, 6),
    (below_floor, "record", VerdictKind.BELOW_PRACTICAL_FLOOR, 6),
    (below_floor, "exploratory", VerdictKind.BELOW_PRACTICAL_FLOOR, 6),
    (invalid_control, "record", VerdictKind.INVALID, 5),
    (lacking, "record", VerdictKind.INVALID, 5),
    (other_argv, "record", VerdictKind.INVALID, 5),
    (aborted, "record", VerdictKind.INFRASTRUCTURE_ABORT, 4),
    (unwritable, "record", VerdictKind.INVALID, 5),
]


@pytest.mark.parametrize(("spoil", "campaign_class", "kind", "status"), CASES)
def test_each_condition_gives_its_line_of_the_table(
    spoil: Spoil, campaign_class: str, kind: VerdictKind, status: int, tmp_path: Path
) -> None:
    verdict = judged(tmp_path, spoil, campaign_class)
    assert (verdict.verdict, exit_code_of(verdict)) == (kind, status)
    assert verdict.because


@pytest.mark.parametrize(("spoil", "status"), [(sound, 0), (inexact, 6)])
def test_a_rehearsal_yields_only_a_rehearsals_verdict(spoil: Spoil, status: int, tmp_path: Path) -> None:
    verdict = judged(tmp_path, spoil, "record", kind="rehearsal")
    assert (verdict.verdict, exit_code_of(verdict)) == (VerdictKind.REHEARSAL_ONLY, status)


@pytest.mark.parametrize(("leg", "kind"), [("A2", VerdictKind.INVALID), ("B2", VerdictKind.NEGATIVE_OR_INCONCLUSIVE)])
def test_a_row_that_does_not_count_is_a_loss_or_no_basis_even_without_a_pair_gate(
    leg: str, kind: VerdictKind, tmp_path: Path
) -> None:
    gates = [gate for gate in GATES if gate["kind"] not in ("pair", "control_near")]
    builder = RunBuilder(stops=False, packet={"preregistration": {"gates": gates}})
    builder.leg(leg).rows[0].clock_step_ns = 5_000_000
    one, other = both(builder, tmp_path)
    assert (one.verdict, other.verdict) == (kind, kind)
    assert disagreements(one, other) == ()


def test_a_phase_stop_by_rule_is_a_completed_judgement(tmp_path: Path) -> None:
    builder = RunBuilder(stops=True, legs_written=2)
    builder.leg("B1").rows[1].gap_ns = 2_100_000
    verdict = analyze_run(builder.seal(tmp_path), analyzer_identity())
    assert (verdict.verdict, exit_code_of(verdict)) == (VerdictKind.PHASE1_FAILED_STOP, 6)
    assert verdict.reported_value is None


def test_a_phase_stop_for_exactness_says_that_it_was_not_exact(tmp_path: Path) -> None:
    builder = RunBuilder(stops=True, legs_written=2)
    builder.leg("B1").rows[1].ids[3] = 499
    verdict = analyze_run(builder.seal(tmp_path), analyzer_identity())
    assert (verdict.verdict, exit_code_of(verdict)) == (VerdictKind.DIAGNOSTIC_NOT_EXACT, 6)


def test_no_value_is_reported_where_exactness_failed(tmp_path: Path) -> None:
    assert judged(tmp_path / "a", sound).reported_value is not None
    assert judged(tmp_path / "b", inexact).reported_value is None


def test_an_analyzer_that_the_packet_does_not_pin_is_a_later_one(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, packet={"analyzers": [{"name": "labctl", "sha256": "5" * 64}]})
    verdict = analyze_run(builder.seal(tmp_path), analyzer_identity())
    assert verdict.analyzer.standing == "later"
    assert judged(tmp_path / "pinned", sound).analyzer.standing == "frozen"


def test_the_table_holds_every_verdict_in_order() -> None:
    assert [kind for kind, _ in TABLE] == list(VerdictKind)[: len(TABLE)]


def test_the_verdict_names_the_run_and_its_seal(tmp_path: Path) -> None:
    builder = RunBuilder()
    run = builder.seal(tmp_path)
    verdict = analyze_run(run, analyzer_identity())
    assert (verdict.run_dir, verdict.seal_sha256, verdict.root_sha256) == (
        run.root.name,
        run.seal_sha256,
        run.root_sha256,
    )
    assert (verdict.engine, verdict.attempt, verdict.is_stand_in) == ("reference reference-1", 1, True)
    assert Verdict.from_json(verdict.canonical(), "verdict") == verdict


def test_the_expectation_is_scored(tmp_path: Path) -> None:
    assert judged(tmp_path / "a", sound).expectation.endswith("as expected")
    for bounds, end in (([50, 60], "below it"), (["1.5", 20], "above it")):
        expectation = {"preregistration": {"expectation": {"effect_percent": bounds}}}
        builder = RunBuilder(stops=False, packet=dict(expectation))
        verdict = analyze_run(builder.seal(tmp_path / end), analyzer_identity())
        assert verdict.expectation.endswith(end)


def test_doubts_are_told(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, packet={"attempt": 2, "follows": "8" * 64})
    key = lane_key(builder.frozen_packet(), MACHINE)
    assert key is not None
    builder.lane = Lane(key=key, attempt=2)
    builder.leg("B1").rows[0].merge_reads = True
    builder.leg("B2").rows[0].has_kernel_stamps = False
    for leg in builder.legs:
        leg.rows[1].ids[:] = [7] * 101
    builder.teacher[1] = [7] * 101
    told = "\n".join(analyze_run(builder.seal(tmp_path), analyzer_identity()).warnings)
    for part in ("stand-in", "attempt 2", "quadratic", "several events", "no kernel", "4 rows are degenerate"):
        assert part in told


def test_a_first_difference_that_moves_between_equal_starts_is_suspicious(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B1").rows[0].ids[10] = 499
    builder.leg("B2").rows[0].ids[20] = 499
    told = analyze_run(builder.seal(tmp_path), analyzer_identity()).warnings
    assert any("moves between equal starts" in line for line in told)


def test_an_abort_says_in_words_why_and_how_far_it_came(tmp_path: Path) -> None:
    first, *details = judged(tmp_path, aborted, "record").because
    assert first == (
        "a start did not complete (a server that never became ready included), so the run ended early; rows measured: 6"
    )
    assert details == ["row 2: expected a complete response, got timeout"]
