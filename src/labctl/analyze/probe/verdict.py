"""The verdict of a probe: the class of the first stage that some rank did not prove; it never suggests an action."""

from functools import partial

from labctl.analyze.card_evidence import CardEvidence, LegHead
from labctl.analyze.card_load import load_card_campaign
from labctl.analyze.card_verdict import (
    CardRunResult,
    aborted_reasons,
    attempt_warnings,
    card_verdict,
    gate_line,
    unsound_reasons,
)
from labctl.analyze.probe.judge import OF_EVIDENCE, JudgedRanks, judge_probe
from labctl.analyze.probe.probe_leg import ProbeLeg, load_probe_leg
from labctl.analyze.record_reader import RecordReader
from labctl.packet.model import PinnedAnalyzer
from labctl.prereg.probe_model import ProbePreregistration
from labctl.records.probe import ImportDone
from labctl.records.run import AbortCause
from labctl.records.verdict import ProbeOutcome, Verdict, VerdictKind
from labctl.seal.verify import SealedRun


def analyze_probe(run: SealedRun, said: ProbePreregistration, analyzer: PinnedAnalyzer) -> Verdict:
    """Judge a sealed probe; contradictions inside it give the verdict `invalid`.

    Raises:
        BrokenEvidence: packet or marker cannot be read, so that there is nothing to say.
    """
    evidence = load_card_campaign(run, run.outcome, partial(_loaded, said=said))
    ranks = judge_probe(evidence, said)
    kind, because = _decide(evidence, ranks)
    folder = evidence.legs[0].folder if evidence.legs else f"01-{evidence.order[0]}"
    outcome = ProbeOutcome(
        stage_class=ranks.stage_class.value,
        ranks=said.ranks,
        clean_teardowns=ranks.clean_teardowns,
        artifact_folder=f"{run.run_dir}/data/legs/{folder}",
    )
    result = CardRunResult(
        verdict=kind,
        because=because,
        software=_software(evidence),
        warnings=tuple(attempt_warnings(evidence)),
        authorizes=(),
        probe=outcome,
    )
    return card_verdict(run, evidence, said, (ranks.judged, result), analyzer)


def _loaded(reader: RecordReader, head: LegHead, said: ProbePreregistration) -> ProbeLeg:
    return load_probe_leg(reader, head, said)


def _decide(evidence: CardEvidence[ProbeLeg], ranks: JudgedRanks) -> tuple[VerdictKind, tuple[str, ...]]:
    """The first that holds: invalid, stopped from outside, a rehearsal, the class."""
    failed = tuple(gate_line(gate) for gate in ranks.judged.failed())
    is_harness = ranks.stage_class is VerdictKind.HARNESS_FAILURE
    if reasons := unsound_reasons(evidence, ranks.judged, OF_EVIDENCE):
        if not is_harness or evidence.conflicts or evidence.outcome is None:
            return VerdictKind.INVALID, reasons
        failed = (*failed, *reasons)
    cause = None if evidence.outcome is None else evidence.outcome.cause
    if evidence.is_aborted and cause is not AbortCause.LEG_FAILED:
        return VerdictKind.INFRASTRUCTURE_ABORT, aborted_reasons(evidence, failed)
    ended = aborted_reasons(evidence, failed) or failed
    if evidence.packet.kind == "rehearsal":
        said = f"the packet is a rehearsal's; class {ranks.stage_class.value}"
        return VerdictKind.REHEARSAL_ONLY, (said, *ended)
    return ranks.stage_class, ended or ("every rank proved every stage and exited with status 0",)


def _software(evidence: CardEvidence[ProbeLeg]) -> str:
    lines = [line for leg in evidence.legs for rank in leg.ranks for line in rank.lines or ()]
    versions = {line.detail.torch for line in lines if isinstance(line, ImportDone)}
    return f"torch {', '.join(sorted(versions)) or 'not imported'}"
