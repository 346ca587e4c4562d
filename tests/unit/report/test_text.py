from pathlib import Path

import pytest

from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import analyzer_identity
from labctl.records.verdict import Verdict
from labctl.report.text import render_report, summarize
from tests.fakes.run_builder import RunBuilder

HOSTILE = b"not compiled \x1b[2J \xe2\x80\xae| <script> `x` \x00\n"


@pytest.fixture
def verdict(tmp_path: Path) -> Verdict:
    return analyze_run(RunBuilder().seal(tmp_path), analyzer_identity())


@pytest.fixture
def hostile(tmp_path: Path) -> Verdict:
    builder = RunBuilder(stops=False)
    builder.leg("B2").log += HOSTILE
    builder.leg("B2").rows[0].ids[3] = 499
    return analyze_run(builder.seal(tmp_path), analyzer_identity())


def test_the_verdict_stands_first(verdict: Verdict) -> None:
    assert render_report(verdict).startswith("# quick-test: exploratory_pass\n")
    assert summarize(verdict)[0] == "verdict: exploratory_pass (quick-test, attempt 1, analyzer frozen)"


def test_every_gate_start_row_and_effect_is_there(verdict: Verdict) -> None:
    text = render_report(verdict)
    lines = text.splitlines()
    for gate in verdict.gates:
        assert any(line.startswith(f"| `{gate.id}` | passed |") for line in lines)
    for start in verdict.starts:
        assert any(line.startswith(f"| {start.leg} | {start.rows} | {start.figures[0].decimal} |") for line in lines)
    for row in verdict.rows:
        assert any(line.startswith(f"| {row.leg} | {row.row} | {row.prompt} | {row.token_count} |") for line in lines)
    for effect in verdict.effect:
        assert effect.value in text


def test_it_says_how_to_verify_the_run_without_labctl(verdict: Verdict) -> None:
    text = render_report(verdict)
    assert "sha256sum -c --strict manifest-sha256.txt" in text
    assert verdict.root_sha256 in text
    assert verdict.seal_sha256 in text


def test_a_stand_in_is_never_presented_as_a_model(verdict: Verdict) -> None:
    assert "not a language model" in render_report(verdict)
    assert any("not a language model" in line for line in summarize(verdict))


def test_what_may_follow_and_what_may_not_is_told(verdict: Verdict) -> None:
    text = render_report(verdict)
    assert "This verdict authorizes:\n\n- a new preregistration" in text
    assert "It does not authorize:\n\n- retry\n- submission to a board" in text


def test_every_miss_keeps_both_sides(hostile: Verdict) -> None:
    text = render_report(hostile)
    assert "### What did not hold in `exact_tokens`: the first 2 of 2" in text
    assert "Exactness did not pass: these figures are diagnostic only." in text
    miss = next(gate for gate in hostile.gates if gate.id == "exact_tokens").misses[0]
    assert f"| {miss.where} | {miss.what} | {miss.expected} | {miss.observed} |" in text


def test_nothing_hostile_reaches_the_reader_unescaped(hostile: Verdict) -> None:
    text = HOSTILE.decode()
    changes = {"because": (text,), "engine": text, "warnings": (text,), "expectation": text}
    spoiled = Verdict.model_validate(hostile.model_dump(by_alias=True) | changes)
    for shown in (render_report(spoiled), "\n".join(summarize(spoiled))):
        assert "not compiled" in shown
        assert not [char for char in shown if char != "\n" and (ord(char) < 32 or char in "\x7f\u202e\u2028")]
    assert "<script>" not in render_report(spoiled)


def test_every_table_row_has_as_many_cells_as_its_header(hostile: Verdict) -> None:
    width = 0
    for line in render_report(hostile).splitlines():
        cells = line.replace("\\|", "").count("|")
        if line.startswith("|"):
            assert width in (0, cells), line
            width = cells
        else:
            width = 0


def test_a_verdict_without_starts_is_still_a_report(tmp_path: Path) -> None:
    full = analyze_run(RunBuilder().seal(tmp_path), analyzer_identity())
    bare = Verdict.model_validate(
        full.model_dump(by_alias=True) | {"starts": (), "rows": (), "effect": (), "reported_value": None}
    )
    text = render_report(bare)
    assert "## Starts" not in text
    assert "## Gates" in text
