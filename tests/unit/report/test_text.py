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


def test_the_top_holds_the_gain_the_starts_and_their_spread(verdict: Verdict) -> None:
    top = render_report(verdict).split("## Gates")[0]
    assert "**gain: +41.45 % over the run; B1 vs A1 +41.45 %, B2 vs A2 +41.45 %**" in top
    assert "**reported value: 1414 tokens/s**" in top
    assert "| A1 | 999.5 | 1000 | 2.9 | 0 | 2 |" in top
    assert "| B2 | 1414 | 1414 | 2.9 | 0 | 2 |" in top
    assert "controls 0.002998 %, candidates 0.000714 %" in top


def test_the_top_of_the_terminal_says_the_same(verdict: Verdict) -> None:
    told = summarize(verdict)
    assert "gain: +41.45 % over the run; B1 vs A1 +41.45 %, B2 vs A2 +41.45 %" in told
    assert any(line.startswith("starts: A1 999.5, B1 1414, B2 1414, A2 999.5 tokens/s") for line in told)


def test_the_long_table_of_rows_is_last(verdict: Verdict) -> None:
    titles = [line for line in render_report(verdict).splitlines() if line.startswith("## ")]
    assert titles[-2:] == ["## Exact values", "## Rows"]


def test_a_fraction_too_long_to_read_is_only_in_the_json(verdict: Verdict) -> None:
    text = render_report(verdict)
    values = {one.value for start in verdict.starts for one in start.figures}
    values |= {one.value for gate in verdict.gates for one in gate.figures} | {one.value for one in verdict.effect}
    assert [value for value in values if len(value) > 40]
    for value in values:
        assert (f"`{value}`" in text) == (len(value) <= 40), value


def test_key_figures_stand_beside_their_gate(verdict: Verdict) -> None:
    (line,) = (line for line in render_report(verdict).splitlines() if line.startswith("| `exact_tokens` | passed"))
    assert "`exact_rows` A1 2, B1 2, B2 2, A2 2 of 2 rows; `degenerate_rows` 0 rows" in line


def test_many_reasons_are_cut_and_the_cut_is_told(verdict: Verdict) -> None:
    many = Verdict.model_validate(
        verdict.model_dump(by_alias=True) | {"because": tuple(f"reason {n}" for n in range(25))}
    )
    assert "- reason 9\n- and 15 more, in verdict.json\n" in render_report(many)


def test_every_gate_start_row_and_effect_is_there(verdict: Verdict) -> None:
    text = render_report(verdict)
    lines = text.splitlines()
    for gate in verdict.gates:
        assert any(line.startswith(f"| `{gate.id}` | passed |") for line in lines)
    for start in verdict.starts:
        for one in start.figures:
            assert any(line.startswith(f"| start | {start.leg} | `{one.name}` | {one.decimal} |") for line in lines)
    for row in verdict.rows:
        assert any(line.startswith(f"| {row.leg} | {row.row} | {row.prompt} | {row.token_count} |") for line in lines)
    for effect in verdict.effect:
        assert any(line.startswith(f"| {effect.where or 'run'} | `{effect.name}` |") for line in lines)


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
    assert "**exactness did not pass: these figures are diagnostic only**" in text
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


def test_what_may_be_concluded_stands_before_the_gates_and_keeps_starts_and_rows_apart(verdict: Verdict) -> None:
    told = render_report(verdict).split("## What may be concluded")[1].split("## Gates")[0]
    between, within = told.split("Within these starts")
    within, limits = within.split("What this design cannot separate")
    assert "effect +41.45 %; starts of one arm vary by" in between
    fixed = "the order was fixed and not drawn, so this p is descriptive only"
    assert f"1 of 6 assignments do as well, p 0.1667 ({fixed}); no result of this design" in between
    assert "B1 vs A1: 2 of 2 rows won, sign test p 0.25" in within
    assert "sign flips of the prompts over all starts: 1 of 4 flips do as well, p 0.25" in within
    assert "too few rows to bound it" in within
    assert "a drift that is quadratic in time cannot be told from the treatment" in limits
    assert "computed by labctl alone" in limits


def test_a_p_over_a_sealed_coin_is_no_description(tmp_path: Path) -> None:
    schedule = {"order": ["A1", "B1", "B2", "A2"], "mirror": "sealed_coin"}
    builder = RunBuilder(stops=False, packet={"preregistration": {"schedule": schedule}})
    told = render_report(analyze_run(builder.seal(tmp_path), analyzer_identity()))
    assert "1 of 2 assignments do as well, p 0.5 (over the order and its mirror, between which a sealed coin" in told
    assert "descriptive only" not in told


def test_nothing_is_concluded_from_one_arm(tmp_path: Path) -> None:
    builder = RunBuilder(order=("A1", "A2"), stops=False, packet={"preregistration": {"treatment": None}})
    told = render_report(analyze_run(builder.seal(tmp_path), analyzer_identity()))
    assert "What may be concluded" not in told
