from dataclasses import replace
from pathlib import Path

import pytest

from labctl.analyze.gates.cross_leg_exact import judge_cross_leg_exact
from labctl.analyze.gates.exact_tokens import first_difference, is_degenerate, judge_exact_tokens
from labctl.analyze.load import load_evidence
from labctl.frozen import canonical_json
from labctl.packet.model import EndpointPacket
from labctl.prereg.gate_kinds import CrossLegExact, ExactTokens
from labctl.records.verdict import GateResult
from tests.fakes.run_builder import RunBuilder


@pytest.mark.parametrize(
    ("observed", "expected", "position"),
    [
        ((1, 2, 3), (1, 2, 3), None),
        ((1, 2, 4), (1, 2, 3), 2),
        ((1, 2), (1, 2, 3), 2),
        ((1, 2, 3), (1, 2), 2),
        ((), (1,), 0),
        ((), (), None),
    ],
)
def test_the_first_difference_is_the_first_position_that_differs(
    observed: tuple[int, ...], expected: tuple[int, ...], position: int | None
) -> None:
    assert first_difference(observed, expected) == position


@pytest.mark.parametrize(
    ("token_ids", "answer"),
    [
        ((0,) * 512, True),
        ((0,) * 7, False),
        ((1, 2) * 20, True),
        (tuple(range(16)) * 4, True),
        (tuple(range(17)) * 4, False),
        (tuple(range(16)) * 4 + (99,), False),
        ((1, 2, 3, 4, 1, 2, 3, 4), False),
        (tuple(range(100)), False),
    ],
)
def test_one_token_or_a_short_cycle_that_fills_a_row_is_degenerate(token_ids: tuple[int, ...], answer: bool) -> None:
    assert is_degenerate(token_ids) is answer


@pytest.mark.parametrize("oracle", ["first_control", "teacher"])
def test_a_run_without_a_row_proves_no_exactness(tmp_path: Path, oracle: str) -> None:
    evidence = load_evidence(RunBuilder(stops=False).seal(tmp_path))
    document = evidence.packet.model_dump(mode="json")
    if oracle == "first_control":
        document["preregistration"]["oracle"] = oracle
    packet = EndpointPacket.model_validate_json(canonical_json(document))
    legs = tuple(replace(leg, rows=()) for leg in evidence.legs)
    bare = replace(evidence, packet=packet, legs=legs)
    for outcome in (
        judge_exact_tokens(bare, ExactTokens(kind="exact_tokens")),
        judge_cross_leg_exact(bare, CrossLegExact(kind="cross_leg_exact")),
    ):
        assert (outcome.result, outcome.reason) == (GateResult.NOT_EVALUATED, "no row was measured")
        assert outcome.figures == ()


def test_a_start_without_rows_beside_one_with_rows_misses(tmp_path: Path) -> None:
    evidence = load_evidence(RunBuilder(stops=False).seal(tmp_path))
    last = replace(evidence.legs[-1], rows=())
    one = replace(evidence, legs=(*evidence.legs[:-1], last))
    assert judge_exact_tokens(one, ExactTokens(kind="exact_tokens")).result is GateResult.FAILED
    assert judge_cross_leg_exact(one, CrossLegExact(kind="cross_leg_exact")).result is GateResult.FAILED
