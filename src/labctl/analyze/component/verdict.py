"""The verdict of a component run: exact on so many cards, or which card, arm, row and boundary is not."""

from labctl.analyze.card_evidence import CardEvidence
from labctl.analyze.card_load import load_card_campaign
from labctl.analyze.card_verdict import (
    CardRunResult,
    aborted_reasons,
    attempt_warnings,
    card_verdict,
    gate_line,
    unsound_reasons,
)
from labctl.analyze.component.card_leg import CardLeg, load_card_leg
from labctl.analyze.component.judge import ALWAYS, JudgedCards, judge_component
from labctl.packet.model import PinnedAnalyzer
from labctl.prereg.component_model import ComponentPreregistration
from labctl.records.component import WorkerFailed
from labctl.records.microcase import MustRaiseRecord
from labctl.records.verdict import Verdict, VerdictKind
from labctl.seal.verify import SealedRun

FOLLOWS = ("the design of a preregistration that shows the whole runtime exact, before any speed is looked at",)


def analyze_component(run: SealedRun, said: ComponentPreregistration, analyzer: PinnedAnalyzer) -> Verdict:
    """Judge a sealed component run; contradictions inside it give the verdict `invalid`.

    Raises:
        BrokenEvidence: packet or marker cannot be read, so that there is nothing to say.
    """
    evidence = load_card_campaign(run, run.outcome, load_card_leg)
    cards = judge_component(evidence, said)
    kind, because = _decide(evidence, cards)
    result = CardRunResult(
        verdict=kind,
        because=because,
        software=_software(evidence),
        warnings=(*attempt_warnings(evidence), *_capture_warnings(evidence)),
        authorizes=FOLLOWS if kind is exact_on(len(evidence.order)) else (),
        cards=cards.cards,
    )
    return card_verdict(run, evidence, said, (cards.judged, result), analyzer)


def exact_on(cards: int) -> VerdictKind:
    """The verdict that so many cards are exact."""
    return VerdictKind(f"exact_{cards}_card_component_pass")


def _decide(evidence: CardEvidence[CardLeg], cards: JudgedCards) -> tuple[VerdictKind, tuple[str, ...]]:
    """The first that holds: invalid, aborted, a rehearsal, a gate that failed, exact."""
    if reasons := unsound_reasons(evidence, cards.judged, ALWAYS):
        return VerdictKind.INVALID, reasons
    if reasons := aborted_reasons(evidence, _worker_failures(evidence)):
        return VerdictKind.INFRASTRUCTURE_ABORT, reasons
    failed = tuple(gate_line(gate) for gate in cards.judged.failed())
    if evidence.packet.kind == "rehearsal":
        return VerdictKind.REHEARSAL_ONLY, ("the packet is a rehearsal's", *failed)
    if failed:
        return VerdictKind.COMPONENT_FAILED, failed
    count = len(evidence.order)
    return exact_on(count), (f"{count} cards: every registered gate passed on each",)


def _worker_failures(evidence: CardEvidence[CardLeg]) -> list[str]:
    lines = []
    for leg in evidence.legs:
        ending = None if leg.component is None else leg.component.ending
        card = leg.order.card.identity if leg.order is not None else "its card is not recorded"
        if isinstance(ending, WorkerFailed):
            what = f"{ending.exception} in stage {ending.stage} after {ending.row} rows: {ending.message}"
            lines.append(f"{leg.name} ({card}): {what}")
        elif not leg.is_closed or leg.component is None:
            lines.append(f"{leg.name} ({card}) did not come to its end")
    return lines


def _software(evidence: CardEvidence[CardLeg]) -> str:
    records = [leg.component for leg in evidence.legs if leg.component is not None]
    versions = {record.versions.torch for record in records if record.versions is not None}
    return f"torch {', '.join(sorted(versions)) or 'not imported'}"


def _capture_warnings(evidence: CardEvidence[CardLeg]) -> list[str]:
    records = [leg.component for leg in evidence.legs if leg.component is not None]
    refused = [one for record in records for one in record.microcases if isinstance(one, MustRaiseRecord)]
    if not any(one.condition == "jit_trace" for one in refused):
        return []
    return ["CPUs have no device graphs: what must be refused was called under the tracer of torch.jit instead"]
