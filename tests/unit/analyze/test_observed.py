"""What the arms differed in, as observed, is shown; and a gap like no other is named."""

from pathlib import Path

from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import analyzer_identity
from labctl.records.verdict import Verdict
from labctl.report.text import render_report
from tests.fakes.run_builder import SPECULATION, RunBuilder

ENVIRONMENT = {
    "environment": "VLLM_FAST",
    "control": None,
    "candidate": "{cache_dir}/fast",
    "proof": {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"},
}


def judged(builder: RunBuilder, folder: Path) -> Verdict:
    return analyze_run(builder.seal(folder), analyzer_identity())


def test_an_argument_treatment_is_the_one_difference_that_was_observed(tmp_path: Path) -> None:
    verdict = judged(RunBuilder(stops=False), tmp_path)
    told = f"arguments: nothing in A1, '--speculative-config' {SPECULATION!r} in B1"
    assert verdict.observed_difference == (told,)
    assert "observed difference between the arms" in render_report(verdict)


def test_a_variable_is_shown_with_its_placeholder(tmp_path: Path) -> None:
    allowed = [*RunBuilder().frozen_packet().environment_allowed, "VLLM_FAST"]
    changes: dict[str, object] = {"preregistration": {"treatment": ENVIRONMENT}, "environment_allowed": sorted(allowed)}
    verdict = judged(RunBuilder(stops=False, packet=changes), tmp_path)
    assert verdict.observed_difference == ("environment VLLM_FAST: absent in A1, '{cache_dir}/fast' in B1",)


def test_whatever_else_differs_is_shown_beside_it(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").observed_argv = lambda argv: (*argv, "--fast")
    builder.leg("A2").observed_environment = lambda found: found | {"LANG": "C"}
    verdict = judged(builder, tmp_path)
    assert verdict.observed_difference is not None
    assert verdict.observed_difference[1:] == (
        "A2 against A1, of one arm: environment LANG: 'C.UTF-8' in A1, 'C' in A2",
        "B2 against B1, of one arm: arguments: nothing in B1, '--fast' in B2",
    )


def test_one_arm_has_nothing_to_differ_from(tmp_path: Path) -> None:
    alone: dict[str, object] = {"preregistration": {"decision": None, "treatment": None}}
    verdict = judged(RunBuilder(order=("A1",), stops=False, packet=alone), tmp_path)
    assert verdict.observed_difference is None


def test_a_row_that_stood_still_once_is_named_among_the_doubts(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("A1").rows[0].pause = (3, 11_400_000_000)
    verdict = judged(builder, tmp_path)
    assert "A1 row 1 stood still for 11400 ms after 3 tokens, once" in " ".join(verdict.warnings)
    figures = {one.name: one.value for start in verdict.starts if start.leg == "A1" for one in start.figures}
    assert figures["one_off_gap_rows"] == "1"
