"""The two analyzers judge a run alike that was cut short at any file of its last leg."""

from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.records.leg import StopCause
from labctl.records.run import AbortCause, Outcome, OutcomeKind
from labctl.records.verdict import Verdict, VerdictKind
from labctl.standalone.analyze_run import judge_run
from tests.fakes.run_builder import RunBuilder

FILES: tuple[str, ...] = (
    "order.json",
    "LEG_STARTED.json",
    "process.json",
    "maps.txt",
    "server.log",
    "metrics-before.prom",
)
FILES += ("wire/01.bin", "wire/01.reads.jsonl", "wire/02.bin", "wire/02.reads.jsonl", "metrics-after.prom")
FILES += ("postflight.json", "exit.json", "leg-manifest-sha256.txt")


@pytest.mark.parametrize("legs", [1, 2, 3])
@pytest.mark.parametrize("reached", range(len(FILES)))
def test_both_analyzers_judge_a_cut_run_alike(legs: int, reached: int, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.legs_written = legs
    last = builder.legs[legs - 1]
    last.exit_cause = StopCause.INTERRUPTED
    closed = tuple(leg.name for leg in builder.legs[: legs - 1])
    detail = ("the controller ended before the run did",)
    builder.outcome = Outcome(
        outcome=OutcomeKind.ABORTED, cause=AbortCause.CONTROLLER_KILLED, detail=detail, legs_closed=closed
    )
    builder.removed = {f"legs/{last.folder}/{name}" for name in (*FILES[reached:], "leg.log")}
    first = analyze_run(builder.seal(tmp_path), analyzer_identity())
    second = Verdict.from_json(canonical_json(judge_run(builder.root)), "second")
    assert first.verdict is VerdictKind.INFRASTRUCTURE_ABORT
    assert disagreements(first, second) == ()
