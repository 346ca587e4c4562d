"""From judged gates to the verdict of a run that starts no server: what all such verdicts say alike."""

from collections.abc import Iterable
from dataclasses import dataclass

from labctl.analyze.card_evidence import CardEvidence, HeadT
from labctl.analyze.gates.judge import Judged
from labctl.analyze.verdict import ABORTED
from labctl.packet.model import PinnedAnalyzer
from labctl.prereg.any_campaign import CardPreregistration
from labctl.records.run import AbortCause
from labctl.records.verdict import (
    AnalyzerIdentity,
    CardOutcome,
    GateOutcome,
    GateResult,
    ProbeOutcome,
    Verdict,
    VerdictKind,
)
from labctl.seal.verify import SealedRun

WORDS = ABORTED | {AbortCause.LEG_FAILED: "a leg did not complete"}
"""Why a run was aborted, in words."""
NEVER = ("a second run of this packet", "an endpoint run", "a claim about speed", "submission to a board")
REHEARSED = ("consumption of the real packet, where its preregistration asks for a rehearsal",)


@dataclass(frozen=True, slots=True)
class CardRunResult:
    """What a kind of campaign concludes of its own."""

    verdict: VerdictKind
    because: tuple[str, ...]
    software: str
    """What ran, such as torch and its version."""
    warnings: tuple[str, ...]
    authorizes: tuple[str, ...]
    cards: tuple[CardOutcome, ...] | None = None
    probe: ProbeOutcome | None = None


def unsound_reasons(evidence: CardEvidence[HeadT], judged: Judged, of_evidence: Iterable[str]) -> tuple[str, ...]:
    """Why nothing can be concluded: contradictions, missing evidence, and gates over the evidence itself that failed.

    Args:
        evidence: the run.
        judged: its gates.
        of_evidence: kinds of gates that say whether the evidence is what it claims to be.
    """
    reasons = [str(problem) for problem in evidence.conflicts]
    outcome = evidence.outcome
    if outcome is None:
        reasons.append("outcome.json does not say how the run ended")
    elif outcome.cause is AbortCause.EVIDENCE:
        reasons += ["the run was aborted over its own evidence", *outcome.detail]
    if not evidence.is_aborted:
        kinds = set(of_evidence)
        reasons += [f"gate {gate.id} was not evaluated: {gate.reason}" for gate in judged.lacking()]
        reasons += [gate_line(gate) for gate in judged.failed() if gate.kind in kinds]
    return tuple(reasons)


def aborted_reasons(evidence: CardEvidence[HeadT], more: Iterable[str]) -> tuple[str, ...]:
    """Why a run was aborted, with the leg that was going on; empty where it was not."""
    outcome = evidence.outcome
    if outcome is None or not evidence.is_aborted:
        return ()
    said = WORDS.get(outcome.cause, f"the run was aborted ({outcome.cause or 'no cause is recorded'})")
    closed = set(outcome.legs_closed)
    open_legs = [leg.name for leg in evidence.legs if leg.name not in closed]
    never = [name for name in evidence.order if name not in {leg.name for leg in evidence.legs}]
    at = f"in {open_legs[0]}" if open_legs else f"before {never[0]}" if never else "after the last leg"
    return (f"{said}: {at}; legs never started: {', '.join(never) or 'none'}", *outcome.detail, *more)


def gate_line(gate: GateOutcome) -> str:
    """A gate that did not pass, as one line."""
    more = f" (and {gate.miss_count - 1} more)" if gate.miss_count > 1 else ""
    return f"gate {gate.id} {gate.result.value}: {gate.reason}{more}"


def has_failed(judged: Judged) -> bool:
    """Whether any gate did not pass."""
    return any(gate.result is not GateResult.PASSED for gate in judged.outcomes)


def attempt_warnings(evidence: CardEvidence[HeadT]) -> list[str]:
    """What an attempt number and the discovery of cards make a reader doubt."""
    packet, lines = evidence.packet, list(evidence.discovery.remarks if evidence.discovery is not None else ())
    if packet.attempt > 1 and packet.kind == "real":
        lines.append(
            f"this is attempt {packet.attempt} in its lane: the chance that one passes by luck grows with each"
        )
    return lines


def card_verdict(
    run: SealedRun,
    evidence: CardEvidence[HeadT],
    said: CardPreregistration,
    judged: tuple[Judged, CardRunResult],
    analyzer: PinnedAnalyzer,
) -> Verdict:
    """The verdict of one run."""
    gates, result = judged
    denied = dict.fromkeys((*said.excluded, *NEVER))
    return Verdict.model_validate(
        {
            "verdict": result.verdict,
            "because": result.because,
            "run_dir": run.run_dir,
            "seal_sha256": run.seal_sha256,
            "root_sha256": run.root_sha256,
            "packet_sha256": evidence.packet_id,
            "marker_sha256": evidence.marker_sha256,
            "campaign": said.id,
            "class": said.campaign_class,
            "kind": evidence.packet.kind,
            "attempt": evidence.packet.attempt,
            "is_stand_in": False,
            "engine": result.software,
            "analyzer": _identity(evidence, analyzer),
            "gates": gates.outcomes,
            "starts": (),
            "rows": (),
            "reported_value": None,
            "effect": (),
            "expectation": "",
            "warnings": result.warnings,
            "authorizes": _authorized(gates, result),
            "does_not_authorize": tuple(denied),
            "cards": result.cards,
            "probe": result.probe,
        }
    )


def _authorized(judged: Judged, result: CardRunResult) -> tuple[str, ...]:
    if result.verdict is not VerdictKind.REHEARSAL_ONLY:
        return result.authorizes
    return () if has_failed(judged) else REHEARSED


def _identity(evidence: CardEvidence[HeadT], analyzer: PinnedAnalyzer) -> AnalyzerIdentity:
    is_pinned = analyzer in evidence.packet.analyzers
    return AnalyzerIdentity(name=analyzer.name, sha256=analyzer.sha256, standing="frozen" if is_pinned else "later")
