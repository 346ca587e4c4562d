"""Gate `roofline`: no start is faster than the memory can be read."""

from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import HUNDRED, decimal_text, figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.timing import RATE, headline
from labctl.prereg.field_types import MetricId
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import Roofline
from labctl.records.verdict import GateOutcome


def judge_roofline(evidence: RunEvidence, gate: Roofline, metric: MetricId) -> GateOutcome:
    """Judge each start's headline against what the registered inputs allow."""
    findings = Findings(gate_id(gate), gate.kind)
    limit = Fraction(gate.bytes_per_second) / Fraction(gate.bytes_per_token)
    findings.figures.append(figure("roofline", "", limit, RATE))
    for leg in evidence.legs:
        speed = headline(leg.rows, metric)
        if speed is None:
            findings.lacks(f"{leg.name}: a row has no {metric}")
            continue
        percent = roofline_percent(speed, limit)
        sides = (f"at most {gate.max_percent} % of {decimal_text(limit)} {RATE}", f"{decimal_text(percent)} %")
        findings.holds("headline", leg.name, sides, is_met=percent <= Fraction(gate.max_percent))
        findings.figures.append(figure("roofline_percent", leg.name, percent, "percent"))
    return findings.outcome()


def roofline_percent(speed: Fraction, limit: Fraction) -> Fraction:
    """A speed in percent of the roofline."""
    return HUNDRED * speed / limit
