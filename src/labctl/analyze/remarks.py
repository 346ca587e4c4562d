"""What a verdict says beside its gates: doubts, the scored expectation, and what may follow."""

from fractions import Fraction

from labctl.analyze.drift import drift_warnings
from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import decimal_text, short_text
from labctl.analyze.gates.accounting import FLAT_SURVIVAL, SURVIVAL_RATIO
from labctl.analyze.gates.exact_tokens import moving_differences
from labctl.analyze.gates.identity import mapped_files
from labctl.analyze.gates.judge import Judged, headline_metric
from labctl.analyze.lane_facts import lane_lines
from labctl.analyze.noise_use import noise_lines, rests_on_foreign_noise
from labctl.analyze.observed import one_off_lines
from labctl.analyze.pairs import overall_gain_percent
from labctl.analyze.timing import coalesced_tokens, has_late_end
from labctl.prereg.designs import design_limits
from labctl.prereg.model import Arm
from labctl.prereg.suite import ImportedOrigin
from labctl.records.verdict import VerdictKind

FOLLOWS = {
    VerdictKind.RECORD_CANDIDATE: ("submission of the reported value, after a second look at the sealed run",),
    VerdictKind.EXPLORATORY_PASS: ("a new preregistration of a higher class",),
    VerdictKind.CALIBRATION: ("use of its noise figures in power statements on this host",),
    VerdictKind.REHEARSAL_ONLY: ("consumption of the real packet, where its preregistration asks for a rehearsal",),
}
NEVER = (
    "a second run of this packet",
    "a claim about other hosts, models, prompts or loads",
    "a faster start in place of the reported value",
)


def warnings_of(evidence: RunEvidence, judged: Judged) -> tuple[str, ...]:
    """Doubts, one line each."""
    metric = headline_metric(evidence.packet.preregistration)
    return (
        *drift_warnings(evidence, metric),
        *_design_warnings(evidence),
        *_record_warnings(evidence),
        *_output_warnings(evidence, judged),
    )


def expectation_of(evidence: RunEvidence) -> str:
    """The stated expectation and whether it came so; empty where nothing was said."""
    expected = evidence.packet.preregistration.expectation
    if expected is None:
        return ""
    lower, upper = (Fraction(bound) for bound in expected.effect_percent)
    said = f"expected a gain of {decimal_text(lower)} to {decimal_text(upper)} %"
    gain = overall_gain_percent(evidence, headline_metric(evidence.packet.preregistration))
    if gain is None:
        return f"{said}; not measured"
    came = "as expected" if lower <= gain <= upper else "below it" if gain < lower else "above it"
    return f"{said}; measured {short_text(gain)} %: {came}"


def follow_ups(evidence: RunEvidence, verdict: VerdictKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the verdict authorizes, and what it does not."""
    excluded = tuple(evidence.packet.preregistration.excluded)
    allowed = FOLLOWS.get(verdict, ())
    if verdict is VerdictKind.RECORD_CANDIDATE and _is_barred(evidence):
        allowed = ()
    denied = () if allowed and verdict is VerdictKind.RECORD_CANDIDATE else ("submission to a board",)
    return allowed, (*dict.fromkeys((*excluded, *denied, *NEVER)),)


def _is_barred(evidence: RunEvidence) -> bool:
    """Whether a record candidate may not be submitted whatever its gates said."""
    is_excluded = "submission" in evidence.packet.preregistration.excluded
    is_uncounted = evidence.marker.lane is None  # nobody can tell which attempt it is
    return is_excluded or is_uncounted or evidence.engine.is_stand_in or rests_on_foreign_noise(evidence)


def _design_warnings(evidence: RunEvidence) -> list[str]:
    packet = evidence.packet
    lines = []
    if packet.service == "embedded":
        lines.append("your service command was NOT exercised: the embedded endpoint ran; use --service real")
    if evidence.engine.is_stand_in:
        lines.append("the service is labctl's embedded endpoint: a stand-in for rehearsals, not a language model")
    lines += [*lane_lines(evidence), *noise_lines(evidence)]
    lines += design_limits(evidence.order, packet.preregistration.schedule.mirror)
    if len(evidence.legs) < len(packet.order):
        lines.append(f"{len(evidence.legs)} of {len(packet.order)} registered starts are there")
    return lines


def _record_warnings(evidence: RunEvidence) -> list[str]:
    lines = []
    tokens = sum(len(row.token_ids) for leg in evidence.legs for row in leg.rows)
    coalesced = sum(coalesced_tokens(row) for leg in evidence.legs for row in leg.rows)
    if coalesced:
        share = short_text(Fraction(coalesced * 100, tokens))
        late = sum(has_late_end(row) for leg in evidence.legs for row in leg.rows)
        lines.append(
            f"{coalesced} of {tokens} tokens ({share} %) came in reads with several events, so stamped late; "
            f"an end of the 1-100 window is among them in {late} rows"
        )
    if any(row.clock is not None and row.clock.source == "monotonic" for leg in evidence.legs for row in leg.rows):
        lines.append("some rows have no kernel receive stamps: their times include the client's own delays")
    if evidence.oracle is not None and isinstance(evidence.oracle.origin, ImportedOrigin):
        lines.append("the teacher was imported from another lab's files: nobody here saw its tokens being generated")
    lines += one_off_lines(evidence)
    killed = [leg.name for leg in evidence.legs if leg.postflight is not None and leg.postflight.killed]
    if killed:
        lines.append(f"processes of {', '.join(killed)} did not end when asked and were killed")
    arms = [frozenset().union(*(mapped_files(leg) or () for leg in evidence.arm(arm))) for arm in Arm]
    if all(arms) and arms[0] != arms[1]:
        lines.append(f"the arms mapped different files: {', '.join(sorted(arms[0] ^ arms[1])[:5])}")
    return lines


def _output_warnings(evidence: RunEvidence, judged: Judged) -> list[str]:
    lines = list(moving_differences(evidence))
    for gate in judged.outcomes:
        for one in gate.figures:
            if one.name == "degenerate_rows" and one.value != "0":
                lines.append(f"{one.value} rows are degenerate: one token or a short cycle fills them")
            if one.name == SURVIVAL_RATIO and Fraction(one.value) > FLAT_SURVIVAL:
                lines.append(f"{one.where}: survival of drafts is flat ({one.decimal}): suspect stale buffers")
    return lines
