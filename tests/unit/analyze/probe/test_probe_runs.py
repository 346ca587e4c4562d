"""Whole sealed probes, judged by both analyzers: each class, and every harness fault before any class."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.analyze.verdict import exit_code_of
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.records.leg import StopCause
from labctl.records.run import AbortCause
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from labctl.report.text import render_report, summarize
from labctl.standalone import analyze_run as standalone
from tests.fakes.probe_run import STAGES, ProbeRun
from tests.fakes.run_builder import json_edit

CLASSES = (
    "harness_or_import_failure",
    "device_setup_failure",
    "process_group_init_failure",
    "tensor_setup_failure",
    "pre_collective_failure",
    "collective_stage_failure",
    "verification_failure",
    "teardown_failure",
)
Spoil = Callable[[ProbeRun], object]


def judged(folder: Path, run: ProbeRun) -> Verdict:
    sealed = run.seal(folder)
    other = Verdict.from_json(canonical_json(standalone.judge_run(run.root)), "standalone")
    one = analyze_run(sealed, analyzer_identity())
    assert [(gate.id, gate.result) for gate in one.gates] == [(gate.id, gate.result) for gate in other.gates]
    assert one.probe == other.probe
    assert disagreements(one, other) == ()
    return one


def test_a_sound_probe_passes_and_its_last_line_says_how(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun())
    assert (verdict.verdict.value, exit_code_of(verdict)) == ("pass", 0)
    last = summarize(verdict)[-1]
    assert last == f"class=pass clean_teardowns=4/4 artifacts={verdict.run_dir}/data/legs/01-probe"
    assert "clean" in render_report(verdict)
    assert verdict.authorizes == ()


@pytest.mark.parametrize(("reached", "stage_class"), list(enumerate(CLASSES)))
def test_the_class_is_that_of_the_first_stage_that_any_rank_missed(
    reached: int, stage_class: str, tmp_path: Path
) -> None:
    run = ProbeRun(reached={2: reached}, exits={2: {"exit_status": -9}})
    verdict = judged(tmp_path, run)
    assert (verdict.verdict.value, exit_code_of(verdict)) == (stage_class, 6)
    assert verdict.probe is not None
    assert (verdict.probe.clean_teardowns, verdict.probe.ranks) == (3, 4)
    assert f"rank 2: {STAGES[reached]}" in " ".join(verdict.because)


def test_the_earliest_missed_stage_of_all_ranks_counts(tmp_path: Path) -> None:
    run = ProbeRun(reached={0: 6, 1: 4, 3: 7})
    assert judged(tmp_path, run).verdict is VerdictKind.PRE_COLLECTIVE_FAILURE


def test_a_rank_that_says_why_is_quoted(tmp_path: Path) -> None:
    words: dict[str, object] = {"reaching": "pg-initialised", "exception": "ConnectionError", "message": "nobody there"}
    verdict = judged(tmp_path, ProbeRun(reached={1: 2}, last_words={1: words}, exits={1: {"exit_status": 4}}))
    assert verdict.verdict is VerdictKind.PROCESS_GROUP_INIT_FAILURE
    assert "ConnectionError: nobody there" in verdict.because[0]


@pytest.mark.parametrize("status", [1, -11])
def test_an_exit_status_after_teardown_is_a_class_of_its_own(status: int, tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun(exits={3: {"exit_status": status}}))
    assert verdict.verdict is VerdictKind.PROCESS_EXIT_FAILURE


def test_a_rank_that_hangs_after_teardown_did_not_exit(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun(exits={3: {"exit_status": -9, "timed_out": True}}))
    assert verdict.verdict is VerdictKind.PROCESS_EXIT_FAILURE


@pytest.mark.parametrize(
    ("stage", "change", "stage_class"),
    [
        ("verified", {"sha256": "0" * 64}, "verification_failure"),
        ("tensor-allocated", {"sha256": "0" * 64}, "tensor_setup_failure"),
        ("tensor-allocated", {"elements": 999}, "tensor_setup_failure"),
        ("pg-initialised", {"world_size": 3}, "process_group_init_failure"),
        ("pg-initialised", {"backend": "nccl"}, "process_group_init_failure"),
    ],
)
def test_a_rank_that_claims_a_stage_without_its_facts_did_not_prove_it(
    stage: str, change: dict[str, object], stage_class: str, tmp_path: Path
) -> None:
    assert judged(tmp_path, ProbeRun(details={(1, stage): change})).verdict.value == stage_class


def removed(name: str) -> Spoil:
    return lambda run: run.removed.add(f"legs/01-probe/{name}")


def edited(name: str, change: Callable[[bytes], bytes]) -> Spoil:
    return lambda run: run.edits.__setitem__(f"legs/01-probe/{name}", change)


def second_line_again(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:2], lines[1], *lines[2:]])


def second_card(change: Callable[[Any], object]) -> Callable[[bytes], bytes]:
    """Another look at the card of rank 1 after the probe."""

    def change_document(document: dict[str, Any]) -> None:
        change(document["cards"][1])

    return json_edit(change_document)


HARNESS: list[Spoil] = [
    removed("rank-1.jsonl"),
    removed("rank-1.exit.json"),
    removed("rank-1.log"),
    edited("rank-1.jsonl", lambda data: data[:-9]),
    edited("rank-1.jsonl", lambda data: data.replace(b'"rank":1', b'"rank":2')),
    edited("rank-1.jsonl", lambda data: data.replace(b"verified", b"checked")),
    edited("rank-1.jsonl", lambda _: b"\x00\x01"),
    edited("rank-1.jsonl", second_line_again),
    edited("rank-1.exit.json", lambda _: b"{}\n"),
    edited("rank-1.log", lambda data: data + b"more"),
    edited("postflight.json", json_edit(lambda document: document.update(processes_left=[101]))),
    edited("exit.json", json_edit(lambda document: document.update(rows_completed=3))),
    edited("postflight.json", second_card(lambda card: card["problems"].append("memory is held"))),
    edited("postflight.json", second_card(lambda card: card["before"].update(identity="cpu:9"))),
    edited("postflight.json", second_card(lambda card: card["after"].update(bus_id="9"))),
]


@pytest.mark.parametrize("spoil", HARNESS)
def test_a_missing_or_unreadable_rank_record_is_a_harness_failure_before_any_class(
    spoil: Spoil, tmp_path: Path
) -> None:
    run = ProbeRun(reached={3: 5})  # which would be a collective failure
    spoil(run)
    verdict = judged(tmp_path, run)
    assert (verdict.verdict, exit_code_of(verdict)) == (VerdictKind.HARNESS_FAILURE, 5)


def test_a_leg_that_failed_is_a_harness_failure(tmp_path: Path) -> None:
    run = ProbeRun(causes={"probe": StopCause.HOST}, abort_cause=AbortCause.LEG_FAILED)
    assert judged(tmp_path, run).verdict is VerdictKind.HARNESS_FAILURE


def test_an_operator_who_stops_a_probe_leaves_no_class(tmp_path: Path) -> None:
    run = ProbeRun(causes={"probe": StopCause.INTERRUPTED}, abort_cause=AbortCause.OPERATOR)
    assert judged(tmp_path, run).verdict is VerdictKind.INFRASTRUCTURE_ABORT


@pytest.mark.parametrize("reached", [8, 5])
def test_a_rehearsal_is_only_ever_a_rehearsal(reached: int, tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun(kind="rehearsal", reached={0: reached}))
    assert verdict.verdict is VerdictKind.REHEARSAL_ONLY
    assert exit_code_of(verdict) == (0 if reached == 8 else 6)


ORDERS: list[tuple[str, Spoil]] = [
    ("identity", edited("order.json", json_edit(lambda document: document.update(nonce="0" * 32)))),
    ("identity", edited("order.json", json_edit(lambda document: document.update(backend="nccl")))),
    ("identity", edited("order.json", json_edit(lambda document: document.update(inputs={})))),
    ("identity", edited("order.json", json_edit(lambda document: document.update(interpreter="/bin/sh")))),
    ("devices", lambda run: run.devices["filtered_by"].update(sched_affinity="0")),  # type: ignore[attr-defined] # JSON
    ("devices", lambda run: run.devices["problems"].append("it hangs")),  # type: ignore[attr-defined] # JSON
]


@pytest.mark.parametrize(("kind", "spoil"), ORDERS)
def test_a_probe_of_something_else_is_invalid(kind: str, spoil: Spoil, tmp_path: Path) -> None:
    run = ProbeRun()
    spoil(run)
    verdict = judged(tmp_path, run)
    assert kind in {gate.kind for gate in verdict.gates if gate.result is GateResult.FAILED}
    assert verdict.verdict in (VerdictKind.INVALID, VerdictKind.HARNESS_FAILURE)


@pytest.mark.parametrize("vendor", ["nvidia", "intel"])
def test_ranks_on_cards_of_every_vendor_are_bound_by_their_stable_names(vendor: str, tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun(vendor=vendor))
    assert verdict.verdict is VerdictKind.PROBE_PASS, verdict.because


def test_two_ranks_on_one_card_are_no_probe_of_these_cards(tmp_path: Path) -> None:
    same: dict[str, object] = {"uuid": "5f2c1e3a-0000-0000-0000-000000000000"}
    verdict = judged(tmp_path, ProbeRun(vendor="nvidia", details={(1, "device-set"): same}))
    assert verdict.verdict is VerdictKind.INVALID


def test_a_rank_that_sees_every_card_has_set_no_device(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun(vendor="nvidia", details={(1, "device-set"): {"visible": 4}}))
    assert verdict.verdict is VerdictKind.DEVICE_SETUP_FAILURE


def test_a_rank_of_another_process_is_no_evidence(tmp_path: Path) -> None:
    assert judged(tmp_path, ProbeRun(exits={1: {"pid": 999}})).verdict is VerdictKind.INVALID


def test_a_leg_that_ended_before_its_ranks_is_a_harness_failure(tmp_path: Path) -> None:
    run = ProbeRun(causes={"probe": StopCause.HOST}, abort_cause=AbortCause.LEG_FAILED)
    run.removed |= {f"legs/01-probe/{name}" for name in ("order.json", "postflight.json")}
    run.removed |= {f"legs/01-probe/rank-{rank}.{kind}" for rank in range(4) for kind in ("jsonl", "log", "exit.json")}
    assert judged(tmp_path, run).verdict is VerdictKind.HARNESS_FAILURE


def test_a_process_that_outlives_its_rank_is_no_clean_end(tmp_path: Path) -> None:
    run = ProbeRun()
    edited("postflight.json", json_edit(lambda document: document.update(outlived=[140])))(run)
    verdict = judged(tmp_path, run)
    assert (verdict.verdict.value, exit_code_of(verdict)) == ("process_exit_failure", 6)
    assert "ran on after the ranks" in verdict.because[0]


def test_what_a_killed_rank_had_started_does_not_hide_how_far_it_came(tmp_path: Path) -> None:
    run = ProbeRun(reached={2: 5}, exits={2: {"exit_status": -9, "timed_out": True}})
    edited("postflight.json", json_edit(lambda document: document.update(outlived=[140])))(run)
    assert judged(tmp_path, run).verdict.value == "collective_stage_failure"


def test_a_probe_without_the_log_of_its_leg_is_invalid(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ProbeRun(removed={"legs/01-probe/leg.log"}))
    assert verdict.verdict is VerdictKind.INVALID
