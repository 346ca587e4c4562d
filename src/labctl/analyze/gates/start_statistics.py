"""One registered gate over whole starts to its judge."""

from fractions import Fraction
from typing import assert_never

from labctl.analyze.gates.consistency import judge_consistency
from labctl.analyze.gates.drift import judge_drift
from labctl.analyze.gates.effect import judge_effect
from labctl.analyze.gates.equivalence import judge_equivalence
from labctl.analyze.gates.separation import judge_separation
from labctl.analyze.speeds import RunSpeeds
from labctl.prereg.model import Preregistration
from labctl.prereg.statistics_gates import Consistency, Drift, Effect, Equivalence, Separation, StatisticsGate
from labctl.records.verdict import GateOutcome


def judge_statistics(speeds: RunSpeeds, gate: StatisticsGate, planned_percent: Fraction | None) -> GateOutcome:
    """Judge one gate; bounds that it does not name follow from the planned effect."""
    match gate:
        case Drift():
            outcome = judge_drift(speeds, gate, planned_percent)
        case Consistency():
            outcome = judge_consistency(speeds, gate)
        case Separation():
            outcome = judge_separation(speeds, gate, planned_percent)
        case Effect():
            outcome = judge_effect(speeds, gate)
        case Equivalence():
            outcome = judge_equivalence(speeds, gate)
        case _:
            assert_never(gate)
    return outcome


def planned_effect_percent(preregistration: Preregistration) -> Fraction | None:
    """The effect that the campaign is planned for, where it says one."""
    power = preregistration.power
    return None if power is None else Fraction(power.planned_effect_percent)
