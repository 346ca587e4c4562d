"""Runs that ended early, chats, and legs that hold less than they should: what is missing is told and never assumed."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labctl.analyze.files import OpenRunFiles
from labctl.analyze.gates.judge import judge_gates
from labctl.analyze.load import load_evidence
from labctl.analyze.sealed_run import analyze_run
from labctl.analyze.verdict import exit_code_of
from labctl.clock import SystemClock
from labctl.errors import BrokenEvidence, MalformedRecord
from labctl.packet.tool import analyzer_identity
from labctl.prereg.model import Api
from labctl.records.run import NOTHING_SHA256
from labctl.records.verdict import GateResult, VerdictKind
from labctl.seal.abort import Abortion, seal_aborted
from labctl.seal.verify import SealedRun
from tests.fakes.run_builder import RunBuilder

ABORTION = Abortion("sealed from outside", NOTHING_SHA256, SystemClock())


def killed(builder: RunBuilder, folder: Path, *removed: str, journal_lines: int | None = None) -> SealedRun:
    """A run whose controller was killed: some files are not there, the journal is cut, another process seals it."""
    builder.write(folder)
    data = builder.root / "data"
    for name in removed:
        for path in sorted(data.glob(name), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    if journal_lines is not None:
        lines = (data / "journal.jsonl").read_bytes().splitlines(keepends=True)
        (data / "journal.jsonl").write_bytes(b"".join(lines[:journal_lines]))
    return seal_aborted(builder.root, ABORTION)


EVERY_LEG = ("legs/*/wire/*", "legs/*/wire", "legs/*/*", "legs/*", "legs", "phase1/*", "outcome.json")
LATER_LEGS = tuple(f"legs/0[34]*{rest}" for rest in ("/wire/*", "/wire", "/*", ""))


@pytest.mark.parametrize(
    ("removed", "journal_lines"),
    [
        ((*EVERY_LEG, "journal.jsonl", "packet/inputs/*", "packet/inputs"), None),
        ((*EVERY_LEG, "journal.jsonl", "packet/inputs/suite.yaml"), None),
        (EVERY_LEG, 1),
        ((*LATER_LEGS, "outcome.json"), 6),
        ((*LATER_LEGS, "outcome.json", "phase1/*"), 5),
        (("legs/04*/exit.json", "legs/04*/leg-manifest-sha256.txt", "outcome.json"), 9),
        (("legs/04*/leg-manifest-sha256.txt", "legs/04*/metrics-after.prom", "outcome.json"), 9),
        (("outcome.json",), None),
        ((), None),
    ],
)
def test_a_controller_killed_at_any_moment_is_an_infrastructure_abort(
    removed: tuple[str, ...], journal_lines: int | None, tmp_path: Path
) -> None:
    run = killed(RunBuilder(), tmp_path, *removed, journal_lines=journal_lines)
    verdict = analyze_run(run, analyzer_identity())
    assert verdict.verdict is VerdictKind.INFRASTRUCTURE_ABORT, verdict.because
    assert exit_code_of(verdict) == 4
    assert verdict.reported_value is None


def test_half_a_phase_answer_of_a_killed_controller_is_no_contradiction(tmp_path: Path) -> None:
    builder = RunBuilder()
    builder.write(tmp_path)
    data = builder.root / "data"
    for name in (*LATER_LEGS, "outcome.json"):
        for path in sorted(data.glob(name), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    lines = (data / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (data / "journal.jsonl").write_bytes(b"".join(lines[:5]))
    os.truncate(data / "phase1/labctl.json", 20)
    verdict = analyze_run(seal_aborted(builder.root, ABORTION), analyzer_identity())
    assert verdict.verdict is VerdictKind.INFRASTRUCTURE_ABORT, verdict.because


def test_a_chat_campaign_is_judged_like_any_other(tmp_path: Path) -> None:
    verdict = analyze_run(RunBuilder(api=Api.CHAT).seal(tmp_path), analyzer_identity())
    assert verdict.verdict is VerdictKind.EXPLORATORY_PASS, verdict.because


def test_a_suite_that_is_no_plain_yaml_cannot_be_judged(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.edits["packet/inputs/suite.yaml"] = lambda data: data + b"\n---\n"
    run = builder.seal(tmp_path)
    with pytest.raises(MalformedRecord):
        analyze_run(run, analyzer_identity())


def test_a_file_that_cannot_be_read_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, legs_written=2)
    builder.write(tmp_path)
    path = builder.root / "data/outcome.json"
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(BrokenEvidence):
        OpenRunFiles(builder.root).read("outcome.json")


@pytest.mark.parametrize(
    ("field", "lacking"),
    [
        ("process", {"identity"}),
        ("order", {"identity"}),
        ("maps", {"identity"}),
        ("log", {"clean_log"}),
        ("before", {"treatment", "cold", "accounting"}),
        ("after", {"treatment", "cold", "accounting"}),
    ],
)
def test_evidence_that_is_not_there_leaves_its_gates_unevaluated(field: str, lacking: set[str], tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    evidence = load_evidence(builder.seal(tmp_path))
    absent: dict[str, Any] = {field: None}
    spoiled = replace(evidence.legs[3], **absent)
    judged = judge_gates(replace(evidence, legs=(*evidence.legs[:3], spoiled)), stopped=False)
    assert {one.id for one in judged.outcomes if one.result is GateResult.NOT_EVALUATED} == lacking


def test_no_start_is_no_evidence_for_any_gate(tmp_path: Path) -> None:
    evidence = load_evidence(RunBuilder(stops=False).seal(tmp_path))
    judged = judge_gates(replace(evidence, legs=()), stopped=False)
    assert {one.result for one in judged.outcomes} == {GateResult.NOT_EVALUATED}


@pytest.mark.parametrize("folder", ["05-B3", "02-A9"])
def test_a_leg_that_nobody_ordered_is_a_contradiction(folder: str, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.write(tmp_path)
    stranger = builder.root / "data/legs" / folder
    stranger.mkdir()
    (stranger / "leg-manifest-sha256.txt").write_bytes(b"")
    conflicts = load_evidence(OpenRunFiles(builder.root)).conflicts
    assert [problem.where for problem in conflicts] == [f"data/legs/{folder}"]
