"""Gate `acceptance`: where a start speculates, enough of what is drafted is accepted."""

from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import HUNDRED, decimal_text, figure
from labctl.analyze.gates.accounting import drafting_of
from labctl.analyze.gates.cold import counter_delta
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import Acceptance
from labctl.records.verdict import GateOutcome


def judge_acceptance(evidence: RunEvidence, gate: Acceptance) -> GateOutcome:
    """Judge every start that speculates: a drafter that nothing is accepted from does not match its target."""
    findings = Findings(gate_id(gate), gate.kind)
    legs = [leg for leg in evidence.legs if drafting_of(evidence, leg) is not None]
    if not legs:
        findings.lacks("no start asks for speculation")
    for leg in legs:
        delta = counter_delta(evidence, leg)
        grown = [None if delta is None else delta.grown(field) for field in ("draft_tokens", "accepted_tokens")]
        drafted, accepted = grown
        if delta is None or delta.is_absent("draft_tokens") or drafted is None or accepted is None:
            findings.lacks(f"{leg.name}: speculation counters are absent")
            continue
        percent = HUNDRED * accepted / drafted if drafted else Fraction(0)
        sides = (f"at least {gate.min_percent} %", f"{decimal_text(percent)} %: {accepted} of {drafted}")
        findings.holds("accepted tokens", leg.name, sides, is_met=percent >= Fraction(gate.min_percent))
        findings.figures.append(figure("accepted_percent", leg.name, percent, "percent"))
    return findings.outcome()
