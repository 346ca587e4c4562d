"""The verdict of a run of servers: evidence, gates, figures, and what follows."""

from labctl.analyze.comparison import comparison_figures
from labctl.analyze.conclusions import conclusion_figures
from labctl.analyze.drift import arm_spreads
from labctl.analyze.evidence import RunEvidence, conflict
from labctl.analyze.figures import figure
from labctl.analyze.gates.decision import reported_value
from labctl.analyze.gates.judge import Judged, headline_metric, judge_gates
from labctl.analyze.lane_facts import lane_figures
from labctl.analyze.load import load_evidence
from labctl.analyze.noise import noise_of
from labctl.analyze.noise_use import noise_use_figures
from labctl.analyze.observed import observed_differences
from labctl.analyze.pair_cycles import pair_cycle_figures
from labctl.analyze.pairs import overall_gain_percent, pair_effects
from labctl.analyze.phase import phase_of_sealed_run
from labctl.analyze.remarks import expectation_of, follow_ups, warnings_of
from labctl.analyze.served import engine_served
from labctl.analyze.timing import row_figures, start_headline
from labctl.analyze.verdict import Case, decide_verdict, may_report
from labctl.errors import Problem
from labctl.packet.model import PinnedAnalyzer
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import CampaignClass
from labctl.records.run import OutcomeKind
from labctl.records.verdict import AnalyzerIdentity, Figure, Verdict, VerdictKind
from labctl.seal.verify import SealedRun

WITHOUT_VALUE = (VerdictKind.INVALID, VerdictKind.INFRASTRUCTURE_ABORT)


def analyze_endpoint(run: SealedRun, analyzer: PinnedAnalyzer) -> Verdict:
    """Judge a sealed run of servers; contradictions inside it give the verdict `invalid`.

    Raises:
        BrokenEvidence: packet, marker, vocabulary or suite cannot be read, so that there is nothing to say.
    """
    evidence = load_evidence(run, run.outcome)
    problems = (*evidence.conflicts, *_phase_conflicts(evidence, analyzer))
    stopped = evidence.outcome is not None and evidence.outcome.outcome is OutcomeKind.PHASE_STOPPED
    judged = judge_gates(evidence, stopped=stopped)
    return _verdict(run, Case(evidence, judged, problems), analyzer)


def _phase_conflicts(evidence: RunEvidence, analyzer: PinnedAnalyzer) -> list[Problem]:
    """Answers at the phase stop, this analyzer's or the other's, that are not what comes out now."""
    problems = []
    again = phase_of_sealed_run(evidence, analyzer.sha256) if evidence.answers else None
    for answer in evidence.answers:
        said, says = (answer.may_continue, answer.legs), again and (again.may_continue, again.legs)
        if said != says:
            problems.append(conflict(f"data/phase1/{answer.analyzer}.json: the phase, judged again", says, said))
    return problems


def _verdict(run: SealedRun, case: Case, analyzer: PinnedAnalyzer) -> Verdict:
    evidence, packet = case.evidence, case.evidence.packet
    kind, because = decide_verdict(case)
    authorizes, denied = follow_ups(evidence, kind)
    metric = headline_metric(packet.preregistration)
    return Verdict.model_validate(
        {
            "verdict": kind,
            "because": because,
            "run_dir": run.run_dir,
            "seal_sha256": run.seal_sha256,
            "root_sha256": run.root_sha256,
            "packet_sha256": evidence.packet_id,
            "marker_sha256": evidence.marker_sha256,
            "campaign": packet.preregistration.id,
            "class": packet.preregistration.campaign_class,
            "kind": packet.kind,
            "attempt": packet.attempt,
            "is_stand_in": evidence.engine.is_stand_in,
            "engine": engine_served(evidence),
            "analyzer": _identity(evidence, analyzer),
            "gates": case.judged.outcomes,
            "starts": tuple(start_headline(leg.name, leg.rows, metric) for leg in evidence.legs if leg.rows),
            "rows": tuple(row_figures(leg.name, row) for leg in evidence.legs for row in leg.rows),
            "reported_value": None if kind in WITHOUT_VALUE else _reported(case.judged),
            "effect": _effect(evidence),
            "expectation": expectation_of(evidence),
            "observed_difference": observed_differences(evidence),
            "warnings": warnings_of(evidence, case.judged),
            "authorizes": authorizes,
            "does_not_authorize": denied,
        }
    )


def _identity(evidence: RunEvidence, analyzer: PinnedAnalyzer) -> AnalyzerIdentity:
    is_pinned = analyzer in evidence.packet.analyzers
    return AnalyzerIdentity(name=analyzer.name, sha256=analyzer.sha256, standing="frozen" if is_pinned else "later")


def _reported(judged: Judged) -> Figure | None:
    decisions = judged.of_kind("decision")
    return reported_value(decisions[0]) if decisions and may_report(judged) else None


def _effect(evidence: RunEvidence) -> tuple[Figure, ...]:
    metric = headline_metric(evidence.packet.preregistration)
    figures = [one for effect in pair_effects(evidence, metric) for one in effect.figures()]
    overall = overall_gain_percent(evidence, metric)
    if overall is not None:
        figures.append(figure("gain_of_mean_headlines", "", overall, "percent"))
    figures += [*pair_cycle_figures(evidence), *(spread.figure() for spread in arm_spreads(evidence, metric))]
    figures += comparison_figures(evidence)
    return (*figures, *conclusion_figures(evidence, metric), *lane_figures(evidence), *_noise(evidence, metric))


def _noise(evidence: RunEvidence, metric: MetricId) -> tuple[Figure, ...]:
    if evidence.packet.preregistration.campaign_class is not CampaignClass.CALIBRATION:
        return noise_use_figures(evidence, metric)
    noise = noise_of(evidence.legs, metric)
    return () if noise is None else tuple(noise.figures())
