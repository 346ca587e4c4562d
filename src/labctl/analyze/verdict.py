"""From judged gates to one verdict: the table, the exit status, and what follows."""

from collections.abc import Callable
from dataclasses import dataclass

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.cross_leg_exact import is_exact_within_arms
from labctl.analyze.gates.judge import EXACTNESS, Judged, registered_gates
from labctl.errors import Problem
from labctl.prereg.model import Arm, CampaignClass
from labctl.records.run import AbortCause, OutcomeKind
from labctl.records.verdict import GateOutcome, GateResult, Verdict, VerdictKind

EXIT_DONE = 0
EXIT_NOT_COMPLETED = 4
EXIT_BROKEN = 5
EXIT_GATE_FAILED = 6
ALWAYS_DONE = frozenset(
    {
        VerdictKind.COMPARISON_MEASURED,
        VerdictKind.EXPLORATORY_PASS,
        VerdictKind.RECORD_CANDIDATE,
        VerdictKind.PROBE_PASS,
    }
)
ABORTED: dict[AbortCause | None, str] = {
    AbortCause.LEG_FAILED: "a start did not complete (a server that never became ready included)",
    AbortCause.HOST_FAULT: "the host failed",
    AbortCause.OPERATOR: "the operator stopped the run",
    AbortCause.CONTROLLER_KILLED: "the controller ended before the run did",
    AbortCause.EVIDENCE: "evidence could not be written, or what was verified was touched",
    AbortCause.SECRET_FOUND: "a file of the run holds a secret",
}
"""Why a run was aborted, in words."""
DONE_WHEN_PASSED = frozenset({VerdictKind.REHEARSAL_ONLY, VerdictKind.CALIBRATION})


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that the table looks at."""

    evidence: RunEvidence
    judged: Judged
    problems: tuple[Problem, ...]

    @property
    def campaign_class(self) -> CampaignClass:
        """The campaign's class."""
        return self.evidence.packet.preregistration.campaign_class

    @property
    def outcome(self) -> OutcomeKind | None:
        """How the run ended; None where no record says so."""
        return None if self.evidence.outcome is None else self.evidence.outcome.outcome

    @property
    def failed_kinds(self) -> frozenset[str]:
        """Kinds of the gates that failed."""
        return frozenset(outcome.kind for outcome in self.judged.failed())


Condition = Callable[[Case], tuple[str, ...]]


def _invalid(case: Case) -> tuple[str, ...]:
    reasons = [str(problem) for problem in case.problems]
    if case.outcome is None:
        reasons.append("outcome.json does not say how the run ended")
    if case.evidence.outcome is not None and case.evidence.outcome.cause is AbortCause.EVIDENCE:
        reasons += ["the run was aborted over its own evidence", *case.evidence.outcome.detail]
    reasons += _set_faults(case)
    if case.outcome is not OutcomeKind.ABORTED:
        reasons += [f"gate {gate.id} was not evaluated: {gate.reason}" for gate in case.judged.lacking()]
        reasons += [_line(gate) for gate in case.judged.of_kind("identity") if gate.result is GateResult.FAILED]
        reasons += _control_faults(case)
    return tuple(reasons)


def _set_faults(case: Case) -> list[str]:
    registered = [name for name, _ in registered_gates(case.evidence.packet.preregistration)]
    found = [outcome.id for outcome in case.judged.outcomes]
    return [] if found == registered else [f"the gates {found} are not the registered set {registered}"]


def _control_faults(case: Case) -> list[str]:
    """A row that does not count is a loss where it is a candidate's, and no basis at all where it is a control's."""
    return [
        f"{leg.name} row {row.row} does not count: {row.faults[0][0]}: {row.faults[0][1]}"
        for leg in case.evidence.arm(Arm.CONTROL)
        for row in leg.rows
        if row.faults
    ]


def _aborted(case: Case) -> tuple[str, ...]:
    outcome = case.evidence.outcome
    if outcome is None or outcome.outcome is not OutcomeKind.ABORTED:
        return ()
    measured = sum(len(leg.rows) for leg in case.evidence.legs)
    said = ABORTED.get(outcome.cause, f"the run was aborted ({outcome.cause or 'no cause is recorded'})")
    return (f"{said}, so the run ended early; rows measured: {measured}", *outcome.detail)


def _rehearsal(case: Case) -> tuple[str, ...]:
    return ("the packet is a rehearsal's",) if case.evidence.packet.kind == "rehearsal" else ()


def _calibration(case: Case) -> tuple[str, ...]:
    is_calibration = case.campaign_class is CampaignClass.CALIBRATION
    return ("class calibration: noise figures, no claim",) if is_calibration else ()


def _comparison(case: Case) -> tuple[str, ...]:
    is_comparison = case.campaign_class is CampaignClass.COMPARISON and case.outcome is OutcomeKind.COMPLETED
    if not is_comparison or case.failed_kinds - EXACTNESS or not is_exact_within_arms(case.evidence):
        return ()
    return ("class comparison: every start equals the others of its arm; differences between the arms are reported",)


def _not_exact(case: Case) -> tuple[str, ...]:
    return tuple(_line(gate) for gate in case.judged.failed() if gate.kind in EXACTNESS)


def _phase_stopped(case: Case) -> tuple[str, ...]:
    if case.outcome is not OutcomeKind.PHASE_STOPPED:
        return ()
    return ("the run stopped after the first pair by the registered rule", *map(_line, case.judged.failed()))


def _negative(case: Case) -> tuple[str, ...]:
    if case.failed_kinds <= {"decision"}:
        return ()
    return tuple(_line(gate) for gate in case.judged.failed())


def _below_floor(case: Case) -> tuple[str, ...]:
    return tuple(_line(gate) for gate in case.judged.failed() if gate.kind == "decision")


def _exploratory(case: Case) -> tuple[str, ...]:
    is_exploratory = case.campaign_class is CampaignClass.EXPLORATORY
    return ("class exploratory: every registered gate passed",) if is_exploratory else ()


def _record(case: Case) -> tuple[str, ...]:
    is_record = case.campaign_class is CampaignClass.RECORD
    return ("class record: every registered gate passed",) if is_record else ()


# The first line whose condition gives reasons wins. A gate of cleanliness, treatment or accounting that fails leaves an
# effect without a basis although the tokens are exact: that is inconclusive, and so the line of the timing gates.
TABLE: tuple[tuple[VerdictKind, Condition], ...] = (
    (VerdictKind.INVALID, _invalid),
    (VerdictKind.INFRASTRUCTURE_ABORT, _aborted),
    (VerdictKind.REHEARSAL_ONLY, _rehearsal),
    (VerdictKind.CALIBRATION, _calibration),
    (VerdictKind.COMPARISON_MEASURED, _comparison),
    (VerdictKind.DIAGNOSTIC_NOT_EXACT, _not_exact),
    (VerdictKind.PHASE1_FAILED_STOP, _phase_stopped),
    (VerdictKind.NEGATIVE_OR_INCONCLUSIVE, _negative),
    (VerdictKind.BELOW_PRACTICAL_FLOOR, _below_floor),
    (VerdictKind.EXPLORATORY_PASS, _exploratory),
    (VerdictKind.RECORD_CANDIDATE, _record),
)


def decide_verdict(case: Case) -> tuple[VerdictKind, tuple[str, ...]]:
    """The first line of the table that matches, and why it does."""
    for kind, condition in TABLE:
        reasons = condition(case)
        if reasons:
            return kind, reasons
    message = "a campaign of a class that the table does not know"
    raise RuntimeError(message)


def exit_code_of(verdict: Verdict) -> int:
    """The exit status of a command that ends in this verdict."""
    if verdict.verdict in (VerdictKind.INVALID, VerdictKind.HARNESS_FAILURE):
        return EXIT_BROKEN
    if verdict.verdict is VerdictKind.INFRASTRUCTURE_ABORT:
        return EXIT_NOT_COMPLETED
    if verdict.verdict in ALWAYS_DONE or verdict.verdict.is_exact_on_cards:
        return EXIT_DONE
    has_failed = any(gate.result is GateResult.FAILED for gate in verdict.gates)
    return EXIT_DONE if verdict.verdict in DONE_WHEN_PASSED and not has_failed else EXIT_GATE_FAILED


def may_report(judged: Judged) -> bool:
    """Whether a value may be reported as a result: exactness passed and the decision was evaluated."""
    decisions = judged.of_kind("decision")
    return bool(decisions) and all(gate.result is not GateResult.NOT_EVALUATED for gate in decisions)


def _line(gate: GateOutcome) -> str:
    more = f" (and {gate.miss_count - 1} more)" if gate.miss_count > 1 else ""
    return f"gate {gate.id} {gate.result.value}: {gate.reason}{more}"
