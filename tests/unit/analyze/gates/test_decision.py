from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.decision import judge_decision, practical_floor, reported_value
from labctl.analyze.speeds import run_speeds
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Decision
from labctl.records.verdict import GateOutcome, GateResult
from tests.fakes.speeds import evidence_with_speeds

FULL = MetricId.DECODE_RATE_FULL


def judged(evidence: RunEvidence, said: Decision) -> GateOutcome:
    return judge_decision(run_speeds(evidence, said.headline), said)


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
    outcome = judged(evidence_with_speeds(A1=100, B1=200, B2=250, A2=101), decision(record, None))
    assert outcome.result is result


def test_the_lower_candidate_start_is_reported() -> None:
    outcome = judged(evidence_with_speeds(A1=100, B1=250, B2=200, A2=125), decision(None, None))
    figures = {one.name: one.value for one in outcome.figures}
    assert (figures["reported_value"], figures["lower_candidate_minus_higher_control"]) == ("200", "75")
    reported = reported_value(outcome)
    assert reported is not None
    assert reported.value == "200"


def test_a_start_that_is_missing_is_no_decision() -> None:
    evidence: RunEvidence = evidence_with_speeds(A1=100, B1=200, B2=250, A2=100)
    legs: tuple[LegEvidence, ...] = evidence.legs[:2]
    outcome = judged(replace(evidence, legs=legs), decision(None, None))
    assert outcome.result is GateResult.NOT_EVALUATED


BOUND = ("A1", "B1", "B2", "A2", "B3", "A3", "A4", "B4")


def bound_decision(record: str | None) -> Decision:
    return Decision(
        headline=FULL, reported_value="confidence_bound", record_to_beat=record, floor_over_record_percent=None
    )


def test_of_more_starts_the_bound_of_the_candidates_is_reported() -> None:
    speeds = dict(zip(BOUND, (100, 200, 250, 125, 200, 100, 125, 250), strict=True))
    outcome = judged(evidence_with_speeds(**speeds), bound_decision(None))
    reported = reported_value(outcome)
    assert reported is not None
    # By hand: least squares of the logarithms on arm and place has 5 degrees of freedom, t is 2.015.
    matrix = np.array([[1, name[0] == "B", place] for place, name in enumerate(BOUND)], dtype=float)
    logs = np.log([float(speeds[name]) for name in BOUND])
    _, squares, *_ = np.linalg.lstsq(matrix, logs)
    mean = np.mean([log for log, name in zip(logs, BOUND, strict=True) if name[0] == "B"])
    by_hand = np.exp(mean - stats.t.ppf(0.95, 5) * np.sqrt(squares[0] / 5 / 4))
    assert float(reported.value) == pytest.approx(float(by_hand), rel=1e-12)
    assert float(reported.value) < 250
    below, near, above = (float(reported.value) * factor for factor in (0.99, 1, 1.01))
    results = [judged(evidence_with_speeds(**speeds), bound_decision(f"{one:.10f}")) for one in (below, near, above)]
    assert [one.result for one in results] == [GateResult.PASSED, GateResult.NOT_EVALUATED, GateResult.FAILED]


def test_starts_that_do_not_vary_have_no_bound_to_report() -> None:
    speeds = {name: 100 if name[0] == "A" else 200 for name in BOUND}
    outcome = judged(evidence_with_speeds(**speeds), bound_decision(None))
    assert outcome.result is GateResult.NOT_EVALUATED
    assert reported_value(outcome) is None


def test_a_decision_without_candidates_is_none() -> None:
    outcome = judged(evidence_with_speeds(A1=100, A2=125), decision(None, None))
    assert outcome.result is GateResult.NOT_EVALUATED
