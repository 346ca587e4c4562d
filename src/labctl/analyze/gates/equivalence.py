"""Gate `equivalence`: two one-sided tests say that the arms are equally fast within the registered limit."""

from dataclasses import replace
from fractions import Fraction

from labctl.analyze.gates.effect import fit_of, judge_above
from labctl.analyze.gates.findings import Findings
from labctl.analyze.speeds import RunSpeeds
from labctl.analyze.statistics.logs import log_of_gain
from labctl.analyze.statistics.starts import bound_half
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.statistics_gates import Equivalence
from labctl.records.verdict import GateOutcome


def judge_equivalence(speeds: RunSpeeds, gate: Equivalence) -> GateOutcome:
    """Judge both bounds: the effect's, and that of the effect with the arms swapped."""
    findings = Findings(gate_id(gate), gate.kind)
    fit = fit_of(findings, speeds)
    if fit is None:
        return findings.outcome()
    half = bound_half(fit, Fraction(gate.confidence))
    limit = -float(log_of_gain(Fraction(gate.within_percent)))
    judge_above(findings, fit, half, limit)
    judge_above(findings, replace(fit, effect=-fit.effect), half, limit)
    return findings.outcome()
