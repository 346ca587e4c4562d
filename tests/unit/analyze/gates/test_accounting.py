"""What the table of spoiled runs does not reach: rows without usage, odd speculation options, no drafts at all."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.accounting import Drafting, drafting_of, judge_accounting
from labctl.analyze.load import load_evidence
from labctl.prereg.gate_kinds import Accounting
from labctl.records.verdict import GateOutcome, GateResult
from tests.fakes.run_builder import RunBuilder

GATE = Accounting(kind="accounting")


@pytest.fixture
def evidence(tmp_path: Path) -> RunEvidence:
    return load_evidence(RunBuilder(stops=False).seal(tmp_path))


def judged(folder: Path, spoil: Callable[[RunBuilder], object]) -> GateOutcome:
    builder = RunBuilder(stops=False)
    spoil(builder)
    return judge_accounting(load_evidence(builder.seal(folder)), GATE)


def figures(outcome: GateOutcome, where: str) -> dict[str, str]:
    return {one.name: one.value for one in outcome.figures if one.where == where}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--speculative-config", '{"method":"ngram","num_speculative_tokens":4}'], Drafting(4, True)),
        (['--speculative-config={"method":"eagle","num_speculative_tokens":3}'], Drafting(3, False)),
        (["--speculative-config", "nonsense"], None),
        (["--speculative-config", '{"method":"ngram"}'], None),
        (["--speculative-config", "[]"], None),
        (["--speculative-config"], None),
        ([], None),
    ],
)
def test_the_length_of_a_draft_is_read_off_the_starts_own_arguments(
    arguments: list[str], expected: Drafting | None, evidence: RunEvidence
) -> None:
    leg = evidence.legs[0]
    assert leg.order is not None
    order = type(leg.order).model_validate(leg.order.model_dump(by_alias=True) | {"argv": ("python", *arguments)})
    assert drafting_of(evidence, replace(leg, order=order)) == expected
    assert drafting_of(evidence, replace(leg, order=None)) is None


def test_a_row_without_usage_cannot_be_accounted_for(tmp_path: Path) -> None:
    def cut(builder: RunBuilder) -> None:
        builder.leg("A1").rows[0].edit_body = lambda body: body[: body.index(b'data: {"id": "cmpl-1", "object"', 9)]

    outcome = judged(tmp_path, cut)
    assert outcome.result is GateResult.FAILED
    assert "growth of generation_tokens" in outcome.reason


def test_a_row_without_prompt_ids_cannot_be_accounted_for(evidence: RunEvidence) -> None:
    leg = evidence.legs[0]
    spoiled = replace(leg, rows=(replace(leg.rows[0], prompt_token_ids=None), leg.rows[1]))
    outcome = judge_accounting(replace(evidence, legs=(spoiled,)), GATE)
    assert outcome.result is GateResult.FAILED
    assert outcome.misses[0].what == "growth of prompt_tokens against the rows"


def test_speculation_that_never_drafts_fails(tmp_path: Path) -> None:
    def idle(builder: RunBuilder) -> None:
        none = {"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0, "accepted_per_position": [0, 0, 0, 0]}
        builder.leg("B2").after.update(none)  # type: ignore[arg-type] # the test spoils them on purpose

    outcome = judged(tmp_path, idle)
    assert [miss.what for miss in outcome.misses] == ["accepted tokens"]
    assert "acceptance_rate" not in figures(outcome, "B2")


def test_the_figures_of_speculation_are_exact_shares(evidence: RunEvidence) -> None:
    outcome = judge_accounting(evidence, GATE)
    found = figures(outcome, "B1")
    assert outcome.result is GateResult.PASSED
    assert (found["acceptance_rate"], found["accepted_per_cycle"], found["emitted_per_cycle"]) == ("1/4", "1", "2")
    assert (found["survival_0"], found["survival_1"], found["cycle_ms"]) == ("1", "0", "10")


def test_without_the_decode_time_there_is_no_cycle_time(tmp_path: Path) -> None:
    def strip(builder: RunBuilder) -> None:
        for leg in builder.legs:
            leg.before["request_decode_time_sum"] = leg.after["request_decode_time_sum"] = None

    assert "cycle_ms" not in figures(judged(tmp_path, strip), "B1")


def test_a_drafter_with_a_fixed_length_must_draft_it_every_round(evidence: RunEvidence) -> None:
    leg = evidence.legs[1]
    assert leg.order is not None
    argv = tuple(part.replace('"ngram"', '"eagle"') for part in leg.order.argv)
    order = type(leg.order).model_validate(leg.order.model_dump(by_alias=True) | {"argv": argv})
    exact = replace(leg, order=order)
    assert judge_accounting(replace(evidence, legs=(exact,)), GATE).result is GateResult.PASSED
    assert leg.after is not None
    values = dict(leg.after.values)
    values["draft_tokens"] = {labels: value - 1 for labels, value in values["draft_tokens"].items()}
    fewer = replace(exact, after=replace(leg.after, values=values))
    assert judge_accounting(replace(evidence, legs=(fewer,)), GATE).result is GateResult.FAILED
    lookup = replace(fewer, order=leg.order)
    assert judge_accounting(replace(evidence, legs=(lookup,)), GATE).result is GateResult.PASSED


@pytest.mark.parametrize("label", [b"1.5", b"x", b"", b"7"])
def test_positions_that_do_not_count_from_zero_fail(label: bytes, tmp_path: Path) -> None:
    def rename(builder: RunBuilder) -> None:
        path = "legs/03-B2/metrics-after.prom"
        builder.edits[path] = lambda data: data.replace(b'position="0"', b'position="' + label + b'"')

    outcome = judged(tmp_path, rename)
    assert outcome.result is GateResult.FAILED
    assert next(miss.what for miss in outcome.misses) == "positions of accepted tokens"
