"""Each gate: a run that passes it, and one spoiled thing that fails exactly it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labctl.analyze.gates.judge import registered_gates
from labctl.analyze.gates.treatment import judge_treatment
from labctl.analyze.load import load_evidence
from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import analyzer_identity
from labctl.prereg.treatment_kinds import CounterProof, CounterState, LineState, LogProof
from labctl.records.leg import Listener
from labctl.records.verdict import GateOutcome, GateResult, Verdict
from tests.fakes.run_builder import RunBuilder, json_edit

Spoil = Callable[[RunBuilder], object]
ALL = [
    "identity", "complete_rows", "treatment", "cold", "clean_log", "exact_tokens", "cross_leg_exact", "accounting",
    "decision", "pair-decode", "control_near",
]  # fmt: skip


def judged(builder: RunBuilder, folder: Path) -> Verdict:
    return analyze_run(builder.seal(folder), analyzer_identity())


def gate(verdict: Verdict, name: str) -> GateOutcome:
    return next(one for one in verdict.gates if one.id == name)


def failed(verdict: Verdict) -> list[str]:
    return [one.id for one in verdict.gates if one.result is GateResult.FAILED]


def put(builder: RunBuilder, leg: str, **counters: object) -> None:
    builder.leg(leg).after.update(counters)  # type: ignore[arg-type] # the test spoils them on purpose


def log(builder: RunBuilder, leg: str, line: bytes) -> None:
    builder.leg(leg).log += line


def process(builder: RunBuilder, leg: str, **changes: object) -> None:
    path = f"legs/{builder.leg(leg).folder}/process.json"
    builder.edits[path] = json_edit(lambda document: document.update(changes))


def readiness(builder: RunBuilder, leg: str, key: str, value: object) -> None:
    def change(document: dict[str, Any]) -> None:
        document["readiness"][key] = value

    builder.edits[f"legs/{builder.leg(leg).folder}/process.json"] = json_edit(change)


def record(builder: RunBuilder, leg: str, file: str, **changes: object) -> None:
    builder.edits[f"legs/{builder.leg(leg).folder}/{file}"] = json_edit(lambda document: document.update(changes))


def environment(builder: RunBuilder, **changes: str) -> None:
    builder.leg("B2").observed_environment = lambda observed: observed | changes


def slow(builder: RunBuilder, leg: str, gap_ns: int) -> None:
    for row in builder.leg(leg).rows:
        row.gap_ns = gap_ns


STRANGER = [Listener(address="0100007F:1", inode=5, owner_pids=(999,)).model_dump(mode="json")]
SPOILS: list[tuple[str, Spoil]] = [
    ("identity", lambda b: setattr(b.leg("B2"), "observed_argv", lambda argv: (*argv, "--fast"))),
    ("identity", lambda b: setattr(b.leg("A2"), "observed_argv", lambda argv: argv[:-1])),
    ("identity", lambda b: environment(b, LD_PRELOAD="/x.so")),
    ("identity", lambda b: environment(b, PATH="/elsewhere")),
    ("identity", lambda b: readiness(b, "B2", "version_body", '{"version": "reference-2"}')),
    ("identity", lambda b: readiness(b, "B2", "version_body", "nonsense")),
    ("identity", lambda b: process(b, "B2", listeners=STRANGER, listeners_after=STRANGER)),
    ("identity", lambda b: process(b, "B2", listeners_after=[])),
    ("identity", lambda b: process(b, "B2", roots_after=[11])),
    ("identity", lambda b: b.leg("B2").rows.__getitem__(1).__setattr__("model", "another")),
    ("identity", lambda b: setattr(b.leg("B2"), "maps", b"/usr/lib/libc.so.6\t1 1\n/other/libm.so.6\t1 2\n")),
    ("identity", lambda b: setattr(b.leg("B2"), "maps", b.leg("B2").maps.replace(b"\n", b"\x0b", 1))),
    ("identity", lambda b: put(b, "B2", process_start_time=1_800_000_009.0)),
    ("identity", lambda b: record(b, "B2", "postflight.json", processes_left=[60])),
    ("identity", lambda b: record(b, "B2", "postflight.json", stop_signal_mono_ns=5)),
    ("identity", lambda b: record(b, "B1", "exit.json", mono_ns=10**15)),
    ("cold", lambda b: setattr(b.leg("B2").rows[1], "cached_tokens", 3)),
    ("cold", lambda b: put(b, "B2", prefix_cache_hits=4)),
    ("cold", lambda b: put(b, "B2", preemptions=1)),
    ("cold", lambda b: put(b, "B2", requests_succeeded=3)),
    ("cold", lambda b: b.leg("B2").before.__setitem__("requests_running", 1)),
    ("clean_log", lambda b: log(b, "B2", b"kernel 16 not compiled, using it anyway\n")),
    ("clean_log", lambda b: log(b, "B2", b"\xff Traceback (most recent call last):\r\n")),
    ("clean_log", lambda b: log(b, "A1", b"Unknown vLLM environment variable detected: X\n")),
    ("accounting", lambda b: put(b, "B2", generation_tokens=203)),
    ("accounting", lambda b: put(b, "B2", prompt_tokens=12)),
    ("accounting", lambda b: put(b, "B2", draft_tokens=401)),
    ("accounting", lambda b: put(b, "B2", draft_tokens=99)),
    ("accounting", lambda b: put(b, "B2", accepted_tokens=99)),
    ("accounting", lambda b: put(b, "B2", accepted_per_position=[40, 60, 0, 0])),
    ("accounting", lambda b: put(b, "B2", accepted_tokens=0, accepted_per_position=[0, 0, 0, 0])),
    ("accounting", lambda b: put(b, "B2", accepted_tokens=300, accepted_per_position=[100, 80, 70, 50])),
    ("pair-decode", lambda b: setattr(b.leg("B2").rows[1], "gap_ns", 2_100_000)),
    ("control_near", lambda b: slow(b, "A2", 1_100_000)),
]  # fmt: skip


def test_a_sound_run_passes_every_gate(tmp_path: Path) -> None:
    verdict = judged(RunBuilder(), tmp_path)
    assert [(one.id, one.result) for one in verdict.gates] == [(name, GateResult.PASSED) for name in ALL]
    assert [one.reason for one in verdict.gates] == [""] * len(ALL)


@pytest.mark.parametrize(("name", "spoil"), SPOILS)
def test_one_spoiled_thing_fails_exactly_its_gate(name: str, spoil: Spoil, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    spoil(builder)
    verdict = judged(builder, tmp_path)
    assert failed(verdict) == [name]
    missed = gate(verdict, name)
    assert missed.miss_count > 0
    assert all(miss.expected != miss.observed for miss in missed.misses)


def test_a_changed_token_fails_exactness_and_says_where(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").rows[1].ids[40] = 499
    verdict = judged(builder, tmp_path)
    assert failed(verdict) == ["exact_tokens", "cross_leg_exact"]
    first = gate(verdict, "exact_tokens").misses[0]
    expected = builder.teacher[1][40]
    assert (first.where, first.what) == ("B2 row 2", "token 40 against teacher")
    assert (first.expected, first.observed) == (f"token {expected}", "token 499")


@pytest.mark.parametrize("name", ["pair-decode", "control_near", "decision"])
def test_no_speed_is_looked_at_before_exactness(name: str, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").rows[1].ids[40] = 499
    outcome = gate(judged(builder, tmp_path), name)
    assert (outcome.result, outcome.misses) == (GateResult.NOT_EVALUATED, ())
    assert "exactness" in outcome.reason
    assert outcome.figures


def test_a_shorter_row_differs_at_its_end(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    row = builder.leg("B2").rows[0]
    del row.ids[-1]
    builder.leg("B2").after["generation_tokens"] = 201
    first = gate(judged(builder, tmp_path), "exact_tokens").misses[0]
    assert (first.what, first.observed) == ("token 100 against teacher", "the end after 100 tokens")


def test_the_first_control_can_be_the_teacher(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, packet={"preregistration": {"oracle": "first_control"}})
    builder.leg("A1").rows[0].ids[7] = 498
    verdict = judged(builder, tmp_path)
    assert failed(verdict) == ["exact_tokens", "cross_leg_exact"]
    assert {miss.where for miss in gate(verdict, "exact_tokens").misses} == {"A2 row 1", "B1 row 1", "B2 row 1"}


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("cold", lambda b: setattr(b.leg("B2").rows[0], "cached_tokens", None)),
        ("cold", lambda b: [b.leg("B2").before.pop("prefix_cache_hits"), b.leg("B2").after.pop("prefix_cache_hits")]),
        ("cold", lambda b: put(b, "B2", requests_succeeded=None)),
        ("cold", lambda b: [b.leg("B2").before.pop("requests_waiting"), b.leg("B2").after.pop("requests_waiting")]),
        ("accounting", lambda b: put(b, "B2", generation_tokens=None)),
        ("accounting", lambda b: put(b, "B2", accepted_per_position=None)),
    ],
)
def test_what_is_absent_is_not_zero_and_not_a_pass(name: str, spoil: Spoil, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    spoil(builder)
    verdict = judged(builder, tmp_path)
    assert gate(verdict, name).result is GateResult.NOT_EVALUATED
    assert failed(verdict) == []


def test_an_absent_treatment_counter_fails_the_proof(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    put(builder, "B2", drafts=None, draft_tokens=None, accepted_tokens=None, accepted_per_position=None)
    verdict = judged(builder, tmp_path)
    assert failed(verdict) == ["treatment"]
    assert gate(verdict, "treatment").misses[0].observed == "absent"


def test_drafts_in_a_control_fail_the_proof(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    put(builder, "A2", drafts=3, draft_tokens=12, accepted_tokens=3, accepted_per_position=[3])
    assert failed(judged(builder, tmp_path)) == ["treatment", "accounting"]


@pytest.mark.parametrize(
    ("legs", "expected"), [(("B1", "B2"), []), (("B1", "B2", "A2"), ["treatment"]), (("B1",), ["treatment"])]
)
def test_a_treatment_can_be_proved_by_the_log(legs: tuple[str, ...], expected: list[str], tmp_path: Path) -> None:
    proof = {"log": "drafter ready", "example": "drafter ready", "control": "absent", "candidate": "present"}
    treatment = {"argument": "--x", "control": None, "candidate": True, "proof": proof}
    changes = {"treatment": treatment, "gates": [{"kind": "exact_tokens"}]}
    builder = RunBuilder(stops=False, packet={"preregistration": changes})
    for name in legs:
        log(builder, name, b"drafter ready\n")
    assert failed(judged(builder, tmp_path)) == expected


@pytest.mark.parametrize("field", ["clock_step_ns", "suspended_ns"])
def test_a_candidate_row_whose_stamps_cannot_be_trusted_fails_its_start_and_loses_its_pair(
    field: str, tmp_path: Path
) -> None:
    builder = RunBuilder(stops=False)
    setattr(builder.leg("B2").rows[1], field, 2_000_000)
    verdict = judged(builder, tmp_path)
    assert failed(verdict) == ["complete_rows", "pair-decode"]
    assert gate(verdict, "decision").result is GateResult.NOT_EVALUATED


def test_a_candidate_row_that_does_not_count_is_a_loss(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").rows[1].clock_step_ns = 2_000_000
    builder.packet = {"preregistration": {"gates": [{"kind": "pair", "metric": "decode_rate_full", "min_row_wins": 2,
                                                     "min_headline_gain_percent": "0"}]}}  # fmt: skip
    verdict = judged(builder, tmp_path)
    assert failed(verdict) == ["complete_rows", "pair"]
    wins = [one.value for one in gate(verdict, "pair").figures if one.name == "row_wins"]
    assert wins == ["2", "1"]


def test_a_required_line_must_be_there_and_as_often_as_registered(tmp_path: Path) -> None:
    required = {"pattern": "graphs=1", "example": "graphs=1", "count": 1}
    gates = [{"kind": "clean_log", "require": [required], "unknown_environment": "report"}]
    for number, lines in enumerate((0, 1, 2)):
        builder = RunBuilder(stops=False, packet={"preregistration": {"gates": gates}})
        for leg in builder.legs:
            leg.log += b"graphs=1\n" * (lines if leg.name == "A2" else 1) + b"Unknown vLLM environment variable\n"
        assert failed(judged(builder, tmp_path / str(number))) == ([] if lines == 1 else ["clean_log"])


@pytest.mark.parametrize(("line", "expected"), [(b"ready\n", []), (b"x\n", ["clean_log"])])
def test_a_required_line_without_a_count_must_be_there_at_least_once(
    line: bytes, expected: list[str], tmp_path: Path
) -> None:
    required = {"pattern": "^ready$", "example": "ready"}
    gates = [{"kind": "clean_log", "require": [required], "unknown_environment": "report"}]
    builder = RunBuilder(stops=False, packet={"preregistration": {"gates": gates}})
    for leg in builder.legs:
        leg.log += line * (2 if leg.name == "A2" else 1)
    assert failed(judged(builder, tmp_path)) == expected


def test_a_proof_by_the_log_needs_the_log(tmp_path: Path) -> None:
    proof = LogProof(log="x", example="x", control=LineState.ABSENT, candidate=LineState.PRESENT)
    evidence = load_evidence(RunBuilder(stops=False).seal(tmp_path))
    bare = replace(evidence, legs=(replace(evidence.legs[0], log=None),))
    assert judge_treatment(bare, proof).result is GateResult.NOT_EVALUATED


def test_a_proof_by_a_counter_needs_the_counter_unless_absence_means_off(tmp_path: Path) -> None:
    state = CounterState.ABSENT_OR_ZERO
    proof = CounterProof(counter="prefix_cache_hits", control=state, candidate=state)
    builder = RunBuilder(stops=False)
    for leg in builder.legs:
        leg.before["prefix_cache_hits"] = leg.after["prefix_cache_hits"] = None
    assert judge_treatment(load_evidence(builder.seal(tmp_path)), proof).result is GateResult.NOT_EVALUATED


def test_registered_gates_are_sorted_by_stage_and_named_once() -> None:
    assert [name for name, _ in registered_gates(RunBuilder().frozen_packet().preregistration)] == ALL
