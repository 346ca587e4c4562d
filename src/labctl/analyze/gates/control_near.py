"""Gate `control_near`: the controls run at the speed that the reference says."""

from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import HUNDRED, decimal_text, figure, gain_percent
from labctl.analyze.gates.findings import Findings
from labctl.analyze.timing import RATE, headline
from labctl.prereg.field_types import MetricId
from labctl.prereg.gate_kinds import ControlNear, gate_id
from labctl.prereg.model import Arm
from labctl.records.verdict import GateOutcome


def judge_control_near(evidence: RunEvidence, gate: ControlNear, metric: MetricId) -> GateOutcome:
    """Judge each control's headline, in the gate's own metric or the run's, against the reference."""
    findings, metric = Findings(gate_id(gate), gate.kind), gate.metric or metric
    reference = Fraction(gate.reference)
    allowed = reference * Fraction(gate.within_percent) / HUNDRED
    for leg in evidence.arm(Arm.CONTROL):
        speed = headline(leg.rows, metric)
        if speed is None:
            findings.lacks(f"{leg.name}: a row has no {metric}")
            continue
        sides = (f"{gate.reference} within {gate.within_percent} %", decimal_text(speed))
        findings.holds("headline", leg.name, sides, is_met=abs(speed - reference) <= allowed)
        findings.figures.append(figure(metric.value, leg.name, speed, RATE))
        findings.figures.append(figure("distance", leg.name, gain_percent(speed, reference), "percent"))
    return findings.outcome()
