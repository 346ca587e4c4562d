"""One registered gate to its judge."""

from typing import assert_never

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.acceptance import judge_acceptance
from labctl.analyze.gates.accounting import judge_accounting
from labctl.analyze.gates.clean_log import judge_clean_log
from labctl.analyze.gates.cold import judge_cold
from labctl.analyze.gates.control_near import judge_control_near
from labctl.analyze.gates.cross_leg_exact import judge_cross_leg_exact
from labctl.analyze.gates.degenerate_output import judge_degenerate_output
from labctl.analyze.gates.exact_text import judge_exact_text
from labctl.analyze.gates.exact_tokens import judge_exact_tokens
from labctl.analyze.gates.exact_within_arms import judge_exact_within_arms
from labctl.analyze.gates.kv_capacity import judge_kv_capacity
from labctl.analyze.gates.long_then_next import judge_long_then_next
from labctl.analyze.gates.moving_difference import judge_moving_difference
from labctl.analyze.gates.pair import judge_pair
from labctl.analyze.gates.postflight import judge_postflight
from labctl.analyze.gates.resident_memory import judge_resident_memory
from labctl.analyze.gates.rollover import judge_rollover
from labctl.analyze.gates.roofline import judge_roofline
from labctl.analyze.gates.steady_host import judge_steady_host
from labctl.analyze.gates.survival_shape import judge_survival_shape
from labctl.prereg.answer_gates import AnswerGate, ExactText, ExactWithinArms
from labctl.prereg.field_types import MetricId
from labctl.prereg.gate_kinds import Accounting, CleanLog, Cold, ControlNear, CrossLegExact, ExactTokens, LegGate, Pair
from labctl.prereg.start_gates import (
    Acceptance,
    DegenerateOutput,
    KvCapacity,
    LongThenNext,
    MovingDifference,
    OutputGate,
    PostflightClean,
    ResidentMemory,
    Rollover,
    Roofline,
    ServerGate,
    SteadyHost,
    SurvivalShape,
)
from labctl.records.verdict import GateOutcome


def judge_registered(evidence: RunEvidence, gate: LegGate, metric: MetricId) -> GateOutcome:
    """Judge one gate of the preregistration, but for those over whole starts; `metric` is the headline's."""
    match gate:
        case Cold() | Accounting() | CleanLog() | ExactTokens() | CrossLegExact():
            outcome = _judge_first(evidence, gate)
        case ExactWithinArms() | ExactText():
            outcome = _judge_answers(evidence, gate)
        case DegenerateOutput() | LongThenNext() | Rollover() | MovingDifference():
            outcome = _judge_output(evidence, gate)
        case SurvivalShape() | Acceptance() | KvCapacity() | ResidentMemory() | SteadyHost() | PostflightClean():
            outcome = _judge_server(evidence, gate)
        case Pair() | ControlNear() | Roofline():
            outcome = _judge_speed(evidence, gate, metric)
        case _:
            assert_never(gate)
    return outcome


def _judge_first(
    evidence: RunEvidence, gate: Cold | Accounting | CleanLog | ExactTokens | CrossLegExact
) -> GateOutcome:
    match gate:
        case Cold():
            outcome = judge_cold(evidence, gate)
        case Accounting():
            outcome = judge_accounting(evidence, gate)
        case CleanLog():
            outcome = judge_clean_log(evidence, gate)
        case ExactTokens():
            outcome = judge_exact_tokens(evidence, gate)
        case CrossLegExact():
            outcome = judge_cross_leg_exact(evidence, gate)
        case _:
            assert_never(gate)
    return outcome


def _judge_answers(evidence: RunEvidence, gate: AnswerGate) -> GateOutcome:
    match gate:
        case ExactWithinArms():
            outcome = judge_exact_within_arms(evidence, gate)
        case ExactText():
            outcome = judge_exact_text(evidence, gate)
        case _:
            assert_never(gate)
    return outcome


def _judge_output(evidence: RunEvidence, gate: OutputGate) -> GateOutcome:
    match gate:
        case DegenerateOutput():
            outcome = judge_degenerate_output(evidence, gate)
        case LongThenNext():
            outcome = judge_long_then_next(evidence, gate)
        case Rollover():
            outcome = judge_rollover(evidence, gate)
        case MovingDifference():
            outcome = judge_moving_difference(evidence, gate)
        case _:
            assert_never(gate)
    return outcome


def _judge_server(evidence: RunEvidence, gate: ServerGate) -> GateOutcome:
    match gate:
        case SurvivalShape():
            outcome = judge_survival_shape(evidence, gate)
        case Acceptance():
            outcome = judge_acceptance(evidence, gate)
        case KvCapacity():
            outcome = judge_kv_capacity(evidence, gate)
        case ResidentMemory():
            outcome = judge_resident_memory(evidence, gate)
        case SteadyHost():
            outcome = judge_steady_host(evidence, gate)
        case PostflightClean():
            outcome = judge_postflight(evidence, gate)
        case _:
            assert_never(gate)
    return outcome


def _judge_speed(evidence: RunEvidence, gate: Pair | ControlNear | Roofline, metric: MetricId) -> GateOutcome:
    match gate:
        case Pair():
            outcome = judge_pair(evidence, gate)
        case ControlNear():
            outcome = judge_control_near(evidence, gate, metric)
        case Roofline():
            outcome = judge_roofline(evidence, gate, metric)
        case _:
            assert_never(gate)
    return outcome
