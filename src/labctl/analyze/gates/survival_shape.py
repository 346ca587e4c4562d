"""Gate `survival_shape`: later positions of a draft are accepted less often than the first."""

from fractions import Fraction
from itertools import pairwise

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import decimal_text, figure
from labctl.analyze.gates.accounting import drafting_of
from labctl.analyze.gates.cold import counter_delta
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import SurvivalShape
from labctl.records.verdict import GateOutcome

FIELD = "accepted_per_position"


def judge_survival_shape(evidence: RunEvidence, gate: SurvivalShape) -> GateOutcome:
    """Judge every start that speculates; flat survival is what stale buffers look like."""
    findings = Findings(gate_id(gate), gate.kind)
    legs = [leg for leg in evidence.legs if drafting_of(evidence, leg) is not None]
    if not legs:
        findings.lacks("no start asks for speculation")
    for leg in legs:
        delta = counter_delta(evidence, leg)
        if delta is None or delta.is_absent(FIELD):
            findings.lacks(f"{leg.name}: counter {FIELD} is absent")
            continue
        by_position = delta.grown_by_label(FIELD, "position")
        survival = [by_position[place] for place in sorted(by_position, key=lambda place: (len(place), place))]
        _judge_shape(findings, leg.name, survival, gate)
    return findings.outcome()


def _judge_shape(findings: Findings, where: str, survival: list[Fraction], gate: SurvivalShape) -> None:
    if len(survival) < gate.min_positions:
        findings.lacks(f"{where}: {len(survival)} draft positions are counted, where {gate.min_positions} must be")
        return
    for place, (earlier, later) in enumerate(pairwise(survival), start=1):
        sides = (f"at most {earlier}", later)
        findings.holds(f"accepted tokens at position {place}", where, sides, is_met=later <= earlier)
    findings.holds("accepted tokens at position 0", where, ("at least 1", survival[0]), is_met=survival[0] > 0)
    if survival[0] > 0:
        share = survival[-1] / survival[0]
        wanted = f"at most {gate.max_last_over_first} of the first; more is flat: suspect stale buffers"
        is_met = share <= Fraction(gate.max_last_over_first)
        findings.holds("accepted at the last position", where, (wanted, decimal_text(share)), is_met=is_met)
        findings.figures.append(figure("last_over_first", where, share, "share"))
