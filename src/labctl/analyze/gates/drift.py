"""Gate `drift`: the first and the last start of each arm lie within the registered bound of each other.

That is every start of an arm where there are four. With more, starts between may lie apart by chance alone; the order
of eight cancels what bends, and the residual of the effect's fit holds the rest.
"""

from fractions import Fraction

from labctl.analyze.figures import decimal_text, figure, gain_percent
from labctl.analyze.gates.findings import Findings
from labctl.analyze.speeds import RunSpeeds
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.model import Arm
from labctl.prereg.statistics_gates import Drift
from labctl.records.verdict import GateOutcome

MOST_PERCENT = Fraction(1)
NO_PLAN = "no planned effect is registered, and no bound of its own"


def judge_drift(speeds: RunSpeeds, gate: Drift, planned_percent: Fraction | None) -> GateOutcome:
    """Judge the faster of the first and last start of each arm against the slower, by exact arithmetic."""
    findings = Findings(gate_id(gate), gate.kind)
    limit = drift_limit_percent(gate, planned_percent)
    headlines = speeds.headlines()
    if headlines is None or limit is None:
        findings.gaps += [*speeds.gaps(), *([NO_PLAN] if limit is None else [])]
        return findings.outcome()
    for arm in Arm:
        values = [value for value, one in zip(headlines, speeds.arms, strict=True) if one is arm]
        ends = values[0], values[-1]
        moved = gain_percent(max(ends), min(ends))
        findings.figures.append(figure("start_drift", f"arm {arm}", moved, "percent"))
        sides = (f"at most {decimal_text(limit)} %", f"{decimal_text(moved)} %")
        findings.holds("first and last start apart", f"arm {arm}", sides, is_met=moved <= limit)
    return findings.outcome()


def drift_limit_percent(gate: Drift, planned_percent: Fraction | None) -> Fraction | None:
    """The bound of the gate: its own, or half of the planned effect and 1 % at most."""
    if gate.max_percent is not None:
        return Fraction(gate.max_percent)
    return None if planned_percent is None else min(MOST_PERCENT, planned_percent / 2)
