from dataclasses import replace
from fractions import Fraction

import pytest

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.decision import judge_decision, practical_floor, reported_value
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Decision
from labctl.records.verdict import GateResult
from tests.fakes.speeds import evidence_with_speeds

FULL = MetricId.DECODE_RATE_FULL


def decision(record: str | None, percent: str | None) -> Decision:
    return Decision(
        headline=FULL, reported_value="lower_candidate_start", record_to_beat=record, floor_over_record_percent=percent
    )


def test_the_floor_is_the_exact_product_of_the_registered_decimals() -> None:
    floor = practical_floor(decision("92.16352215694299", "0.25"))
    assert floor == Fraction("92.16352215694299") * Fraction("1.0025")
    assert Fraction("94.92003934159611") > floor
    assert floor != Fraction("92.393930962335")


def test_a_record_without_a_margin_is_its_own_floor() -> None:
    assert practical_floor(decision("100", None)) == 100
    assert practical_floor(decision(None, None)) is None


@pytest.mark.parametrize(
    ("record", "result"),
    [("199", GateResult.PASSED), ("200", GateResult.FAILED), ("200.0000000001", GateResult.FAILED)],
)
def test_the_floor_must_be_exceeded_strictly(record: str, result: GateResult) -> None:
    outcome = judge_decision(evidence_with_speeds(A1=100, B1=200, B2=250, A2=101), decision(record, None))
    assert outcome.result is result


def test_the_lower_candidate_start_is_reported() -> None:
    outcome = judge_decision(evidence_with_speeds(A1=100, B1=250, B2=200, A2=125), decision(None, None))
    figures = {one.name: one.value for one in outcome.figures}
    assert (figures["reported_value"], figures["lower_candidate_minus_higher_control"]) == ("200", "75")
    reported = reported_value(outcome)
    assert reported is not None
    assert reported.value == "200"


def test_a_start_that_is_missing_is_no_decision() -> None:
    evidence: RunEvidence = evidence_with_speeds(A1=100, B1=200, B2=250, A2=100)
    legs: tuple[LegEvidence, ...] = evidence.legs[:2]
    outcome = judge_decision(replace(evidence, legs=legs), decision(None, None))
    assert outcome.result is GateResult.NOT_EVALUATED
