"""Gate `decision`: the lower candidate start is the reported value, and it must exceed the registered floor."""

from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import HUNDRED, decimal_text, figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.timing import RATE, headline
from labctl.prereg.model import Arm, Decision
from labctl.records.verdict import Figure, GateOutcome

KIND = "decision"
REPORTED = "reported_value"


def judge_decision(evidence: RunEvidence, decision: Decision) -> GateOutcome:
    """Judge the reported value against record x (1 + floor / 100), strictly, by exact arithmetic."""
    findings = Findings(KIND, KIND)
    controls, candidates = (_headlines(findings, evidence, decision, arm) for arm in (Arm.CONTROL, Arm.CANDIDATE))
    if findings.gaps:
        return findings.outcome()
    reported = min(candidates)
    findings.figures.append(figure(REPORTED, "", reported, RATE))
    margin = reported - max(controls)
    findings.figures.append(figure("lower_candidate_minus_higher_control", "", margin, RATE))
    findings.holds("a reported value", "run", ("above 0", decimal_text(reported)), is_met=reported > 0)
    floor = practical_floor(decision)
    if floor is not None:
        findings.figures.append(figure("practical_floor", "", floor, RATE))
        sides = (f"more than {decimal_text(floor)}", decimal_text(reported))
        findings.holds("practical floor", "run", sides, is_met=reported > floor)
    return findings.outcome()


def practical_floor(decision: Decision) -> Fraction | None:
    """What the reported value must exceed: the product of the two registered decimals, exactly."""
    if decision.record_to_beat is None:
        return None
    return Fraction(decision.record_to_beat) * (1 + Fraction(decision.floor_over_record_percent or "0") / HUNDRED)


def reported_value(outcome: GateOutcome) -> Figure | None:
    """The reported value among a decision's figures."""
    return next((one for one in outcome.figures if one.name == REPORTED), None)


def _headlines(findings: Findings, evidence: RunEvidence, decision: Decision, arm: Arm) -> list[Fraction]:
    wanted = sum(Arm.of_leg(name) is arm for name in evidence.order)
    legs = evidence.arm(arm)
    if len(legs) != wanted:
        findings.lacks(f"{len(legs)} of {wanted} starts of arm {arm}")
    found = []
    for leg in legs:
        speed = headline(leg.rows, decision.headline)
        if speed is None:
            findings.lacks(f"{leg.name}: a row has no {decision.headline}")
        else:
            found.append(speed)
    return found
