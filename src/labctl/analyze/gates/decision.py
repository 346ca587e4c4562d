"""Gate `decision`: the value that counts, which must exceed the registered floor."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from labctl.analyze.figures import HUNDRED, decimal_figure, decimal_text, figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.speeds import RunSpeeds
from labctl.analyze.statistics.logs import log_of
from labctl.analyze.statistics.starts import candidate_bound
from labctl.analyze.timing import RATE
from labctl.prereg.model import Arm, Decision
from labctl.records.verdict import Figure, GateOutcome

KIND = "decision"
REPORTED = "reported_value"
CONFIDENCE = Fraction(95, 100)
RELATIVE_TOLERANCE = Fraction(1, 10**9)
"""Two analyzers agree that far in what is no fraction."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The value that counts, exact where it is one start's."""

    value: Fraction
    tolerance: Fraction
    """How far it may be off by rounding."""

    def figure(self) -> Figure:
        """The value, exactly or as decimal text."""
        if not self.tolerance:
            return figure(REPORTED, "", self.value, RATE)
        return decimal_figure(REPORTED, "", Decimal(repr(float(self.value))), RATE)


def judge_decision(speeds: RunSpeeds, decision: Decision) -> GateOutcome:
    """Judge the reported value against record x (1 + floor / 100), strictly, by exact arithmetic where it is exact."""
    findings = Findings(KIND, KIND)
    headlines = speeds.headlines()
    if headlines is None:
        findings.gaps += speeds.gaps()
        return findings.outcome()
    reported = _reported(decision, headlines, speeds.arms)
    if reported is None:
        findings.lacks("too few starts that vary to bound the candidates' mean")
        return findings.outcome()
    sided = list(zip(headlines, speeds.arms, strict=True))
    lower = min(value for value, arm in sided if arm is Arm.CANDIDATE)
    higher = max(value for value, arm in sided if arm is Arm.CONTROL)
    findings.add((reported.figure(), figure("lower_candidate_minus_higher_control", "", lower - higher, RATE)))
    findings.holds("a reported value", "run", ("above 0", decimal_text(reported.value)), is_met=reported.value > 0)
    _judge_floor(findings, reported, practical_floor(decision))
    return findings.outcome()


def _judge_floor(findings: Findings, reported: Reported, floor: Fraction | None) -> None:
    if floor is None:
        return
    findings.figures.append(figure("practical_floor", "", floor, RATE))
    if reported.tolerance and abs(reported.value - floor) <= reported.tolerance:
        findings.lacks("the reported value lies too near to the practical floor to be told from it")
        return
    sides = (f"more than {decimal_text(floor)}", decimal_text(reported.value))
    findings.holds("practical floor", "run", sides, is_met=reported.value > floor)


def _reported(decision: Decision, headlines: tuple[Fraction, ...], arms: tuple[Arm, ...]) -> Reported | None:
    match decision.reported_value:
        case "lower_candidate_start":
            lower = min(value for value, arm in zip(headlines, arms, strict=True) if arm is Arm.CANDIDATE)
            return Reported(lower, Fraction(0))
        case "confidence_bound":
            bound = candidate_bound([log_of(value) for value in headlines], arms, CONFIDENCE)
            value = Fraction(0) if bound is None else Fraction(math.exp(bound))
            return None if bound is None else Reported(value, RELATIVE_TOLERANCE * value)
        case _:
            assert_never(decision.reported_value)


def practical_floor(decision: Decision) -> Fraction | None:
    """What the reported value must exceed: the product of the two registered decimals, exactly."""
    if decision.record_to_beat is None:
        return None
    return Fraction(decision.record_to_beat) * (1 + Fraction(decision.floor_over_record_percent or "0") / HUNDRED)


def reported_value(outcome: GateOutcome) -> Figure | None:
    """The reported value among a decision's figures."""
    return next((one for one in outcome.figures if one.name == REPORTED), None)
