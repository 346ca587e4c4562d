"""What an analysis says: gates, figures and one verdict."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.model import CampaignClass


def _is_absent(value: object) -> bool:
    """Fields that came later are left out where unused, so that earlier analyses keep their one canonical form."""
    return value is None


class GateResult(StrEnum):
    """Only `passed` counts."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_EVALUATED = "not_evaluated"


class VerdictKind(StrEnum):
    """Verdicts: of endpoint campaigns, in the order in which the first whose condition holds wins; then of the others.

    `invalid`, an infrastructure abort and `rehearsal_only` hold for every kind of campaign.
    """

    INVALID = "invalid"
    INFRASTRUCTURE_ABORT = "infrastructure_abort_after_measurement_start"
    REHEARSAL_ONLY = "rehearsal_only"
    CALIBRATION = "calibration"
    COMPARISON_MEASURED = "comparison_measured"
    DIAGNOSTIC_NOT_EXACT = "diagnostic_measured_not_exact"
    PHASE1_FAILED_STOP = "phase1_failed_stop"
    NEGATIVE_OR_INCONCLUSIVE = "negative_or_inconclusive_stop"
    BELOW_PRACTICAL_FLOOR = "exact_reproducible_candidate_below_practical_floor"
    EXPLORATORY_PASS = "exploratory_pass"  # noqa: S105 (a verdict, no password)
    RECORD_CANDIDATE = "record_candidate"
    # Component campaigns
    COMPONENT_FAILED = "component_failed"
    EXACT_1_CARD = "exact_1_card_component_pass"
    EXACT_2_CARD = "exact_2_card_component_pass"
    EXACT_3_CARD = "exact_3_card_component_pass"
    EXACT_4_CARD = "exact_4_card_component_pass"
    EXACT_5_CARD = "exact_5_card_component_pass"
    EXACT_6_CARD = "exact_6_card_component_pass"
    EXACT_7_CARD = "exact_7_card_component_pass"
    EXACT_8_CARD = "exact_8_card_component_pass"
    EXACT_9_CARD = "exact_9_card_component_pass"
    EXACT_10_CARD = "exact_10_card_component_pass"
    EXACT_11_CARD = "exact_11_card_component_pass"
    EXACT_12_CARD = "exact_12_card_component_pass"
    EXACT_13_CARD = "exact_13_card_component_pass"
    EXACT_14_CARD = "exact_14_card_component_pass"
    EXACT_15_CARD = "exact_15_card_component_pass"
    EXACT_16_CARD = "exact_16_card_component_pass"
    # Probes: the first stage that any rank failed to reach
    HARNESS_FAILURE = "harness_failure"
    HARNESS_OR_IMPORT_FAILURE = "harness_or_import_failure"
    DEVICE_SETUP_FAILURE = "device_setup_failure"
    PROCESS_GROUP_INIT_FAILURE = "process_group_init_failure"
    TENSOR_SETUP_FAILURE = "tensor_setup_failure"
    PRE_COLLECTIVE_FAILURE = "pre_collective_failure"
    COLLECTIVE_STAGE_FAILURE = "collective_stage_failure"
    VERIFICATION_FAILURE = "verification_failure"
    TEARDOWN_FAILURE = "teardown_failure"
    PROCESS_EXIT_FAILURE = "process_exit_failure"
    PROBE_PASS = "pass"  # noqa: S105 (a verdict, no password)

    @property
    def is_exact_on_cards(self) -> bool:
        """Whether it says that every card of a component campaign is exact."""
        return self.name.startswith("EXACT_") and self.name.endswith("_CARD")


class Figure(FrozenModel):
    """One number, as exact text."""

    name: str
    """What it is, or the metric's id."""
    where: str
    """Leg, pair, or leg and row; empty for the whole run."""
    value: str
    """Integer, decimal, or `numerator/denominator`."""
    decimal: str
    """The same to 12 significant digits, for people."""
    unit: str
    """Such as tokens/s, percent, tokens, count, ns."""


class Miss(FrozenModel):
    """One check that did not hold: both sides are kept."""

    what: str
    """What was checked."""
    where: str
    """Leg, row, file or counter."""
    expected: str
    """What must hold."""
    observed: str
    """What was found."""


class GateOutcome(FrozenModel):
    """One gate."""

    id: SafeName
    """As registered, or the name of a gate that is always judged."""
    kind: SafeName
    """The gate's kind."""
    result: GateResult
    """Passed, failed or not evaluated."""
    reason: str
    """One line; empty where passed."""
    figures: tuple[Figure, ...]
    """What was computed."""
    misses: tuple[Miss, ...]
    """What did not hold (the first 50)."""
    miss_count: int
    """How many checks did not hold."""


class StartHeadline(FrozenModel):
    """One start, as figures."""

    leg: SafeName
    """The leg."""
    rows: int
    """Rows measured."""
    figures: tuple[Figure, ...]
    """Headline (median), mean, sample SD, p10, minimum, maximum, first row, time to first token, coalesced reads."""


class RowFigures(FrozenModel):
    """One row of one start."""

    leg: SafeName
    """The leg."""
    row: int
    """From 1."""
    prompt: SafeName
    """The prompt's id."""
    token_count: int
    """Generated tokens."""
    figures: tuple[Figure, ...]
    """Metrics of the row, as exact rationals."""
    token_ids_sha256: Sha256 | None = None
    """SHA-256 of the canonical JSON list of token ids; null in verdicts from before it was kept."""


class CardResult(StrEnum):
    """What became of one card of a component campaign."""

    EXACT = "exact_component_pass"
    FAILED = "component_failed"
    NOT_RUN = "not_run"


class CardOutcome(FrozenModel):
    """One card of a component campaign."""

    leg: SafeName
    """The leg."""
    identity: str
    """The card's stable identity; empty where none is recorded."""
    result: CardResult
    """Exact, failed, or never run to its end."""
    rows: int
    """Rows recorded."""
    assertions: int
    """Pairs of tensors whose raw bytes were found equal."""


class ProbeOutcome(FrozenModel):
    """How far a probe came."""

    stage_class: SafeName
    """The class: `pass`, or what the first stage that any rank failed to reach stands for."""
    ranks: int
    """Ranks registered."""
    clean_teardowns: int
    """Ranks that proved every stage and exited with status 0."""
    artifact_folder: str
    """Where the ranks' records lie, relative to the run's folder."""

    @property
    def line(self) -> str:
        """Class, clean teardowns and artifact folder, as one line."""
        clean = f"clean_teardowns={self.clean_teardowns}/{self.ranks}"
        return f"class={self.stage_class} {clean} artifacts={self.artifact_folder}"


class AnalyzerIdentity(FrozenModel):
    """Who judged."""

    name: SafeName
    """The analyzer."""
    sha256: Sha256
    """Its code."""
    standing: Literal["frozen", "later"]
    """`frozen`: the packet pins this very code."""


class Verdict(FrozenModel):
    """`verdict.json`: what an analyzer concludes of one sealed run."""

    schema_id: Literal["labctl/verdict/1"] = Field(default="labctl/verdict/1", alias="schema")
    """The format of this document."""
    verdict: VerdictKind
    """The verdict."""
    because: tuple[str, ...]
    """Why this line of the table and no earlier one, one line each."""
    run_dir: SafeName
    """The run."""
    seal_sha256: Sha256
    """SHA-256 of its seal statement."""
    root_sha256: Sha256
    """SHA-256 of its manifest."""
    packet_sha256: Sha256
    """Its packet."""
    marker_sha256: Sha256
    """Its marker."""
    campaign: SafeName
    """The campaign's id."""
    campaign_class: CampaignClass = Field(alias="class")
    """The campaign's class."""
    kind: Literal["real", "rehearsal"]
    """The packet's kind."""
    attempt: int
    """The packet's attempt number."""
    is_stand_in: bool
    """Whether the service was labctl's embedded endpoint, which is not a model."""
    engine: str
    """Engine and version, as served."""
    analyzer: AnalyzerIdentity
    """Who judged."""
    gates: tuple[GateOutcome, ...]
    """Every registered gate and every gate that is always judged, once each."""
    starts: tuple[StartHeadline, ...]
    """Every start that was measured."""
    rows: tuple[RowFigures, ...]
    """Every row."""
    reported_value: Figure | None
    """The value that counts, where the decision registers one and exactness passed."""
    effect: tuple[Figure, ...]
    """Gains by pair and over the run, diagnostic where exactness failed."""
    expectation: str
    """What was expected and whether it came so; empty where nothing was said."""
    warnings: tuple[str, ...]
    """What the design cannot separate, and other doubts, one line each."""
    authorizes: tuple[str, ...]
    """What may follow from this verdict."""
    does_not_authorize: tuple[str, ...]
    """What may not."""
    cards: tuple[CardOutcome, ...] | None = Field(default=None, exclude_if=_is_absent)
    """Every card, where the campaign is a component's."""
    probe: ProbeOutcome | None = Field(default=None, exclude_if=_is_absent)
    """How far the probe came, where the campaign is one."""
    observed_difference: tuple[str, ...] | None = Field(default=None, exclude_if=_is_absent)
    """How the arms differed in the arguments and environments that were observed; null in earlier verdicts."""
