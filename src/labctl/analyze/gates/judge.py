"""All gates of one run, in order: identity, cleanliness, exactness, accounting, timing; a speed waits for exactness."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.complete_rows import judge_complete_rows
from labctl.analyze.gates.cross_leg_exact import is_exact_within_arms
from labctl.analyze.gates.decision import judge_decision
from labctl.analyze.gates.findings import withheld
from labctl.analyze.gates.identity import judge_identity
from labctl.analyze.gates.registered import judge_registered
from labctl.analyze.gates.start_statistics import judge_statistics, planned_effect_percent
from labctl.analyze.gates.treatment import judge_treatment
from labctl.analyze.speeds import RunSpeeds, run_speeds
from labctl.prereg.field_types import MetricId
from labctl.prereg.gate_kinds import Pair, gate_id
from labctl.prereg.model import CampaignClass, Preregistration
from labctl.prereg.statistics_gates import StatisticsGate
from labctl.records.verdict import GateOutcome, GateResult

EXACTNESS = frozenset(
    {
        *("exact_tokens", "cross_leg_exact", "exact_within_arms", "exact_text"),
        *("long_then_next", "rollover", "moving_difference"),
    }
)
WORTHLESS = frozenset({"degenerate_output"})
"""Kinds whose failure leaves a speed without worth although no token differs."""
OF_ALL_STARTS = frozenset({"drift", "consistency", "separation", "effect", "equivalence", "decision"})
"""Kinds that have nothing to stand on before every registered start is there."""
TIMING = OF_ALL_STARTS | {"pair", "control_near", "roofline"}
STAGES = (
    ("identity",),
    ("complete_rows", "cold", "clean_log", "treatment", "kv_capacity", "resident_memory", "steady_host", "postflight"),
    (*sorted(EXACTNESS), "degenerate_output"),
    ("accounting", "acceptance", "survival_shape"),
    ("pair", "control_near", "roofline", "drift", "consistency", "separation", "effect", "equivalence", "decision"),
)
NOT_EXACT = "not looked at: exactness did not pass; figures are diagnostic"
STOPPED = "not looked at: the run stopped after the first pair by the registered rule"
NOT_WHOLE = "not looked at: a row does not count"


@dataclass(frozen=True, slots=True)
class Judged:
    """Every gate's outcome, and which of them another gate or the registered stop kept from being looked at."""

    outcomes: tuple[GateOutcome, ...]
    withheld_ids: frozenset[str]

    def of_kind(self, kind: str) -> tuple[GateOutcome, ...]:
        """The outcomes of one kind."""
        return tuple(outcome for outcome in self.outcomes if outcome.kind == kind)

    def failed(self) -> tuple[GateOutcome, ...]:
        """Gates that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.result is GateResult.FAILED)

    def lacking(self) -> tuple[GateOutcome, ...]:
        """Gates that were not evaluated for lack of evidence."""
        return tuple(
            outcome
            for outcome in self.outcomes
            if outcome.result is GateResult.NOT_EVALUATED and outcome.id not in self.withheld_ids
        )


def registered_gates(preregistration: Preregistration) -> tuple[tuple[str, str], ...]:
    """Id and kind of every gate that a verdict must hold, in the order in which they are looked at."""
    always = ["identity", "complete_rows"]
    always += ["treatment"] if preregistration.treatment is not None else []
    always += ["decision"] if preregistration.decision is not None else []
    gates = [(kind, kind) for kind in always] + [(gate_id(gate), gate.kind) for gate in preregistration.gates]
    places = {kind: place for place, stage in enumerate(STAGES) for kind in stage}
    return tuple(sorted(gates, key=lambda gate: places[gate[1]]))


def judge_gates(evidence: RunEvidence, *, stopped: bool) -> Judged:
    """Judge every gate of a run.

    Args:
        evidence: the run.
        stopped: whether the registered phase stop ended it, so that the decision has no starts to stand on.
    """
    judges = _judges(evidence)
    outcomes: list[GateOutcome] = []
    withheld_ids: set[str] = set()
    for name, kind in registered_gates(evidence.packet.preregistration):
        outcome = judges[name]()
        reason = _withheld_reason(evidence, kind, outcomes, stopped=stopped)
        if reason is not None:
            outcome = withheld(outcome, reason)
            withheld_ids.add(name)
        outcomes.append(outcome)
    return Judged(tuple(outcomes), frozenset(withheld_ids))


def headline_metric(preregistration: Preregistration) -> MetricId:
    """The metric of a start's headline: the decision's, else the first pair gate's, else the conventional rate."""
    if preregistration.decision is not None:
        return preregistration.decision.headline
    metrics = [gate.metric for gate in preregistration.gates if isinstance(gate, Pair)]
    return metrics[0] if metrics else MetricId.DECODE_RATE_CONVENTIONAL_1_100


def _judges(evidence: RunEvidence) -> dict[str, Callable[[], GateOutcome]]:
    preregistration = evidence.packet.preregistration
    judges: dict[str, Callable[[], GateOutcome]] = {
        "identity": lambda: judge_identity(evidence),
        "complete_rows": lambda: judge_complete_rows(evidence),
    }
    treatment, decision = preregistration.treatment, preregistration.decision
    metric = headline_metric(preregistration)

    @cache
    def speeds() -> RunSpeeds:
        return run_speeds(evidence, metric)

    if treatment is not None:
        judges["treatment"] = lambda: judge_treatment(evidence, treatment.proof)
    if decision is not None:
        judges["decision"] = lambda: judge_decision(speeds(), decision)
    planned = planned_effect_percent(preregistration)
    for gate in preregistration.gates:
        if isinstance(gate, StatisticsGate):
            judges[gate_id(gate)] = lambda gate=gate: judge_statistics(speeds(), gate, planned)  # type: ignore[misc] # now
        else:
            judges[gate_id(gate)] = lambda gate=gate: judge_registered(evidence, gate, metric)  # type: ignore[misc] # now
    return judges


def _withheld_reason(evidence: RunEvidence, kind: str, before: list[GateOutcome], *, stopped: bool) -> str | None:
    if kind not in TIMING:
        return None
    if not _has_exactness(evidence, before):
        return NOT_EXACT
    if kind in OF_ALL_STARTS and stopped:
        return STOPPED
    is_whole = all(outcome.result is GateResult.PASSED for outcome in before if outcome.kind == "complete_rows")
    return None if is_whole or kind == "pair" else NOT_WHOLE


def _has_exactness(evidence: RunEvidence, before: list[GateOutcome]) -> bool:
    # A comparison registers that the arms may differ: there, what must be exact is each arm within itself.
    if evidence.packet.preregistration.campaign_class is CampaignClass.COMPARISON:
        return is_exact_within_arms(evidence)
    needed = EXACTNESS | WORTHLESS
    return all(outcome.result is GateResult.PASSED for outcome in before if outcome.kind in needed)
