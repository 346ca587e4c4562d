"""Gate `treatment`: positive evidence in one arm and negative in the other that the switch was read and executed."""

from typing import assert_never

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.cold import counter_delta
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.log_expectations import ExpectedLines, as_text, check_lines
from labctl.analyze.log_lines import find_lines, log_chunks
from labctl.prereg.model import Arm
from labctl.prereg.treatment_kinds import CounterProof, CounterState, LineState, LogProof, Proof
from labctl.records.verdict import GateOutcome

KIND = "treatment"


def judge_treatment(evidence: RunEvidence, proof: Proof) -> GateOutcome:
    """Judge the registered proof in every start."""
    findings = Findings(KIND, KIND)
    for leg in evidence.legs:
        match proof:
            case CounterProof():
                _judge_counter(findings, evidence, leg, proof)
            case LogProof():
                _judge_log(findings, leg, proof)
            case _:
                assert_never(proof)
    return findings.outcome()


def _judge_counter(findings: Findings, evidence: RunEvidence, leg: LegEvidence, proof: CounterProof) -> None:
    delta = counter_delta(evidence, leg)
    if delta is None:
        findings.lacks(f"{leg.name}: no counters")
        return
    state = proof.control if leg.arm is Arm.CONTROL else proof.candidate
    grown = delta.grown(proof.counter)
    if grown is None:
        findings.lacks(f"{leg.name}: counter {proof.counter} is absent, and that does not mean that it is off")
        return
    shown = "absent" if delta.is_absent(proof.counter) else grown
    match state:
        case CounterState.ABSENT_OR_ZERO:
            total = delta.after.total(proof.counter) or 0
            findings.holds(f"counter {proof.counter}", leg.name, ("absent or 0", shown), is_met=total == 0)
        case CounterState.POSITIVE:
            findings.holds(f"counter {proof.counter}", leg.name, ("at least 1", shown), is_met=grown > 0)
        case _:
            assert_never(state)
    findings.figures.append(figure(proof.counter, leg.name, grown, "count"))


def _judge_log(findings: Findings, leg: LegEvidence, proof: LogProof) -> None:
    if leg.log is None:
        findings.lacks(f"{leg.name}: no server log")
        return
    state = proof.control if leg.arm is Arm.CONTROL else proof.candidate
    found = find_lines(log_chunks(leg.log), [proof.log])[proof.log]
    if state is LineState.ABSENT:
        findings.equal(f"lines matching {proof.log!r}", leg.name, 0, found.count)
    else:
        groups = as_text(state) if isinstance(state, dict) else ()
        check_lines(findings, leg.name, found, ExpectedLines(proof.log, ranks=proof.ranks, groups=groups))
    findings.figures.append(figure("proof_lines", leg.name, found.count, "lines"))
