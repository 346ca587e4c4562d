"""What a preregistration says: the whole grammar of a campaign file of kind `endpoint`.

There is one service and one treatment; nothing else can differ between the arms, because there is no place to write it.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from labctl.frozen import DecimalText, FrozenModel, GitCommit, SafeName, Sha256

CampaignId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
LegName = Annotated[str, StringConstraints(pattern=r"^[AB][1-9][0-9]?$")]
GateId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
RelativePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$", max_length=2000)]
Number = Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | DecimalText
PLACEHOLDERS = ("{python}", "{model:NAME}", "{host}", "{port}", "{nonce}", "{leg_dir}", "{cache_dir}")


class CampaignClass(StrEnum):
    """What a campaign is for, and so what its verdict may claim."""

    EXPLORATORY = "exploratory"
    CALIBRATION = "calibration"
    COMPARISON = "comparison"
    RECORD = "record"


class Arm(StrEnum):
    """The two arms: A is the control, B the candidate."""

    CONTROL = "A"
    CANDIDATE = "B"

    @classmethod
    def of_leg(cls, leg: str) -> "Arm":
        """The arm of a leg, by its name."""
        return cls(leg[0])


class MetricId(StrEnum):
    """Rates that a gate or a headline may name; formulas stand in the metric registry."""

    DECODE_RATE_CONVENTIONAL_1_100 = "decode_rate_conventional_1_100"
    DECODE_RATE_LEGACY_100_1_100 = "decode_rate_legacy_100_1_100"
    DECODE_RATE_CHUNKED_1_100 = "decode_rate_chunked_1_100"
    DECODE_RATE_FULL = "decode_rate_full"
    WALL_RATE = "wall_rate"


class Api(StrEnum):
    """Which of the two generation endpoints is used."""

    COMPLETIONS = "completions"
    CHAT = "chat"


class Expectation(FrozenModel):
    """What the author expects, said in advance and scored afterwards."""

    effect_percent: Annotated[tuple[Number, ...], Field(min_length=2, max_length=2)]
    """Lower and upper bound of the expected gain of B over A, in percent."""


def _is_absent(value: object) -> bool:
    """Fields that came later are left out where unused, so that earlier packets keep their one canonical form."""
    return value is None


class GitSource(FrozenModel):
    """A source tree, verified by the content of its commit."""

    git: SafeName
    """A key of the host profile's `sources`."""
    commit: GitCommit
    """The full object id of the commit."""
    base: GitCommit | None = Field(default=None, exclude_if=_is_absent)
    """The commit that a patch series starts from; with `patches`, or neither."""
    patches: RelativePath | None = Field(default=None, exclude_if=_is_absent)
    """A folder below campaigns/; its `*.patch` files, applied to the base by name, must give the tree of `commit`."""


class InstalledSource(FrozenModel):
    """An installed package, verified by its RECORD in the campaign's interpreter."""

    installed: SafeName
    """The distribution's name."""
    version: Line
    """The exact version."""
    record_sha256: Sha256 | None = None
    """SHA-256 of the RECORD file; null: whatever freezing finds, which then stands in the packet."""


def _source_kind(value: Any) -> str | None:  # noqa: ANN401 (pydantic passes raw input)
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    return next((kind for kind in ("git", "installed") if kind in keys), None)


Source = Annotated[
    Annotated[GitSource, Tag("git")] | Annotated[InstalledSource, Tag("installed")],
    Discriminator(
        _source_kind,
        custom_error_type="source_kind",
        custom_error_message="a source needs exactly one of the keys `git` and `installed`",
    ),
]


class ModelSource(FrozenModel):
    """Model files, verified by a manifest."""

    name: SafeName
    """A key of the host profile's `models`; the placeholder is `{model:NAME}`."""
    manifest: RelativePath
    """`sha256sum` lines of every file of the model, relative to the model's folder; a path below campaigns/."""


class Ready(FrozenModel):
    """When a start counts as ready."""

    timeout_s: Annotated[int, Field(ge=1, le=7200)]
    """Seconds from the start of the process to a healthy answer; after that the leg fails."""


class Stop(FrozenModel):
    """How a server is stopped."""

    timeout_s: Annotated[int, Field(ge=1, le=600)] = 60
    """Seconds from SIGTERM to the end of every process of the start; what is left then is killed and named."""


class Service(FrozenModel):
    """The one service from which both arms are generated."""

    engine: SafeName
    """Which engine vocabulary applies."""
    command: Annotated[tuple[Line, ...], Field(min_length=1)]
    """The argument list, with placeholders; no shell is involved."""
    environment: dict[EnvironmentName, Line] = Field(default_factory=dict)
    """What the server's environment holds beside the fixed allow-list; values may hold placeholders."""
    ready: Ready
    """The readiness deadline."""
    stop: Stop = Stop()
    """The stop deadline."""
    log_limit_mib: Annotated[int, Field(ge=1, le=4096)] = 64
    """The leg fails when the server prints more than this."""


class CounterState(StrEnum):
    """What a counter must show over a start."""

    ABSENT_OR_ZERO = "absent_or_zero"
    POSITIVE = "positive"


class LineState(StrEnum):
    """What the server's log must show over a start."""

    ABSENT = "absent"
    PRESENT = "present"


class CounterProof(FrozenModel):
    """Proof by a counter that the switch was read and executed."""

    counter: Literal[
        "drafts", "draft_tokens", "accepted_tokens", "prefix_cache_queries", "prefix_cache_hits", "preemptions"
    ]
    """A field of the engine vocabulary's counters."""
    control: CounterState
    """What A must show."""
    candidate: CounterState
    """What B must show."""


class LogProof(FrozenModel):
    """Proof by a line of the server's own log."""

    log: Line
    """A regular expression, case-sensitive, searched in each line."""
    example: Line
    """A line that the expression must match; checked at validation."""
    control: LineState
    """What A must show."""
    candidate: LineState
    """What B must show."""


def _proof_kind(value: Any) -> str | None:  # noqa: ANN401 (pydantic passes raw input)
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    return next((kind for kind in ("counter", "log") if kind in keys), None)


Proof = Annotated[
    Annotated[CounterProof, Tag("counter")] | Annotated[LogProof, Tag("log")],
    Discriminator(
        _proof_kind,
        custom_error_type="proof_kind",
        custom_error_message="a proof needs exactly one of the keys `counter` and `log`",
    ),
]


class ArgumentTreatment(FrozenModel):
    """The arms differ in one command-line argument, appended to the command."""

    argument: Annotated[str, StringConstraints(pattern=r"^--?[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """The option, such as `--speculative-config`."""
    control: Line | Literal[True] | None
    """The option's value in A; null: the option is absent; true: the option stands without a value."""
    candidate: Line | Literal[True] | None
    """The same for B."""
    proof: Proof
    """Positive evidence in one arm and negative in the other."""


class EnvironmentTreatment(FrozenModel):
    """The arms differ in one environment variable."""

    environment: EnvironmentName
    """The variable."""
    control: Line | None
    """Its value in A; null: the variable is absent."""
    candidate: Line | None
    """The same for B."""
    proof: Proof
    """Positive evidence in one arm and negative in the other."""


def _treatment_kind(value: Any) -> str | None:  # noqa: ANN401 (pydantic passes raw input)
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    return next((kind for kind in ("argument", "environment") if kind in keys), None)


Treatment = Annotated[
    Annotated[ArgumentTreatment, Tag("argument")] | Annotated[EnvironmentTreatment, Tag("environment")],
    Discriminator(
        _treatment_kind,
        custom_error_type="treatment_kind",
        custom_error_message="a treatment needs exactly one of the keys `argument` and `environment`",
    ),
]


class Workload(FrozenModel):
    """What every start is asked, once, in order, one request at a time."""

    suite: RelativePath
    """The suite of prompts; a path below campaigns/."""
    max_tokens: Annotated[int, Field(ge=1, le=100_000)]
    """Tokens to generate for each prompt."""
    temperature: Literal[0]
    """Greedy decoding; nothing else can be compared token by token."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)]
    """The request's seed."""
    api: Api
    """Completions or chat."""
    ignore_eos: bool = False
    """Whether generation goes on after an end token."""
    request_timeout_s: Annotated[int, Field(ge=1, le=7200)] = 600
    """Seconds for one whole request; after that the leg fails."""


class Schedule(FrozenModel):
    """In which order the starts run."""

    order: Annotated[tuple[LegName, ...], Field(min_length=1, max_length=24)]
    """Such as `[A1, B1, B2, A2]`."""
    stop_after_first_pair: bool = False
    """Whether the analyzers judge the first two legs before the others may run."""
    wait_s: Annotated[int, Field(ge=0, le=3600)] = 0
    """Seconds between the stop of a start and the next."""


class TeacherOracle(FrozenModel):
    """Expected tokens from a file."""

    teacher: RelativePath
    """An oracle file; a path below campaigns/."""


class ExactTokens(FrozenModel):
    """Every row of every leg equals the oracle: token ids, text and finish reason."""

    kind: Literal["exact_tokens"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class CrossLegExact(FrozenModel):
    """Every other leg equals the first."""

    kind: Literal["cross_leg_exact"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class Cold(FrozenModel):
    """Nothing was served from a cache, and nothing ran before or beside the prompts."""

    kind: Literal["cold"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    cached_tokens: Annotated[int, Field(ge=0, le=0)]
    """Cached prompt tokens that a row may report."""
    requests_per_start: Annotated[int, Field(ge=1, le=10_000)]
    """Requests that each start's counters must show."""


class Accounting(FrozenModel):
    """Token ids, usage and counters tell one story."""

    kind: Literal["accounting"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class DenyPattern(FrozenModel):
    """A log line that invalidates a start."""

    pattern: Line
    """A regular expression, case-sensitive, searched in each line."""
    example: Line
    """A line that the expression must match; checked at validation."""


class RequirePattern(FrozenModel):
    """A log line that every start must print."""

    pattern: Line
    """A regular expression, case-sensitive, searched in each line."""
    example: Line
    """A line that the expression must match; checked at validation."""
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """How many lines must match; null: at least one."""


class CleanLog(FrozenModel):
    """The server's log holds nothing that a clean log does not hold, and what it must hold."""

    kind: Literal["clean_log"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    deny: tuple[DenyPattern, ...] = ()
    """Patterns beside the engine vocabulary's own."""
    require: tuple[RequirePattern, ...] = ()
    """Patterns that each start's log must match."""
    unknown_environment: Literal["fail", "report"]
    """What a warning of an unknown environment variable does."""


class Pair(FrozenModel):
    """In each pair of neighbouring starts, the candidate is faster."""

    kind: Literal["pair"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    metric: MetricId
    """The rate that is compared, row by row and as a median."""
    min_row_wins: Annotated[int, Field(ge=1, le=10_000)]
    """Rows in which the candidate must be strictly faster; a tie is a loss."""
    min_headline_gain_percent: DecimalText
    """The gain of the medians, at least, as exact text."""
    min_median_paired_gain_percent: DecimalText | None = None
    """The median over rows of the gain, at least; null: reported only."""


class ControlNear(FrozenModel):
    """The controls run at the speed that the reference says."""

    kind: Literal["control_near"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    reference: DecimalText
    """Tokens per second, as exact text, in the headline metric."""
    within_percent: DecimalText
    """The allowed distance of each control's headline from the reference, in percent of the reference."""


Gate = Annotated[
    ExactTokens | CrossLegExact | Cold | Accounting | CleanLog | Pair | ControlNear, Field(discriminator="kind")
]


class Decision(FrozenModel):
    """Which number counts, and what it must exceed."""

    headline: MetricId
    """The metric whose median over rows is a start's headline."""
    reported_value: Literal["lower_candidate_start"]
    """Which candidate start is reported."""
    record_to_beat: DecimalText | None = None
    """Tokens per second, as exact text."""
    floor_over_record_percent: DecimalText | None = None
    """The reported value must exceed record x (1 + this / 100), strictly; the product is computed exactly."""


class Power(FrozenModel):
    """What the campaign can resolve, stated in advance."""

    noise_record: RelativePath
    """The host's noise record; a path below campaigns/."""
    planned_effect_percent: DecimalText
    """The gain that the campaign is planned for."""
    alpha: DecimalText
    """The one-sided error rate."""
    power: DecimalText
    """The wanted chance of detecting the planned effect."""


class Signatures(StrEnum):
    """Whether approvals carry OpenSSH signatures."""

    NONE = "none"
    SSH = "ssh"


class Reviews(FrozenModel):
    """How many people other than the author must approve the packet."""

    required: Annotated[int, Field(ge=0, le=16)]
    """Approvals needed, each by another person with another key."""
    signatures: Signatures
    """`ssh`: every approval that counts is signed; `none`: for class exploratory only."""
    allowed_signers: RelativePath | None = None
    """The OpenSSH allowed-signers file, a path below campaigns/; needed where signatures are `ssh`."""


class HostCheck(FrozenModel):
    """A command that freezing runs in the exported snapshot; a failing one refuses the freeze."""

    name: SafeName
    """A short name for reports."""
    command: Annotated[tuple[Line, ...], Field(min_length=1)]
    """The argument list; `{python}` is the campaign's interpreter."""
    timeout_s: Annotated[int, Field(ge=1, le=3600)] = 600
    """After this many seconds the check has failed."""


class Preregistration(FrozenModel):
    """One campaign, written in advance."""

    labctl: Literal[1]
    """The version of this format."""
    kind: Literal["endpoint"]
    """The campaign's kind."""
    id: CampaignId
    """The campaign's name: lower-case letters, digits and hyphens."""
    title: Line
    """One line for people."""
    author: Annotated[str, StringConstraints(pattern=r"^[^<>\r\n]+ <[^<>@\s]+@[^<>@\s]+>$")]
    """`Name <mail@host>`; the author cannot review."""
    question: Line
    """What the campaign is to answer."""
    expectation: Expectation | None = None
    """What the author expects; scored in the verdict, never a gate."""
    campaign_class: Annotated[CampaignClass, Field(alias="class")]
    """exploratory, calibration, comparison or record."""
    host: RelativePath
    """The host profile; a path below campaigns/."""
    interpreter: SafeName
    """A key of the host profile's `interpreters`."""
    sources: tuple[Source, ...] = ()
    """Engine code that is verified in place before each start and after each stop."""
    models: tuple[ModelSource, ...] = ()
    """Model files that are verified before each start."""
    service: Service
    """What both arms run."""
    treatment: Treatment | None = None
    """The sole difference between A and B; needed where the order has a B."""
    workload: Workload
    """What every start is asked."""
    schedule: Schedule
    """In which order the starts run."""
    oracle: TeacherOracle | Literal["first_control"]
    """Where expected tokens come from: a teacher file, or the first control start of the run."""
    gates: Annotated[tuple[Gate, ...], Field(min_length=1)]
    """What must hold; identity, complete rows, treatment and decision are always judged as well."""
    decision: Decision | None = None
    """Which number counts; needed where the order has both arms."""
    power: Power | None = None
    """What the campaign can resolve; needed for class record."""
    reviews: Reviews
    """Who must approve."""
    host_checks: tuple[HostCheck, ...] = ()
    """Commands that freezing runs in the exported snapshot."""
    rehearsal_waived: Line | None = None
    """For class record: the reason why no rehearsal with the real service is needed."""
    authorizes: Annotated[tuple[Literal["endpoint_run"], ...], Field(min_length=1, max_length=1)]
    """What this packet allows, once."""
    excluded: tuple[SafeName, ...] = ()
    """What it does not allow, for readers."""


def gate_id(gate: Gate) -> str:
    """The id of a gate: its own, or its kind."""
    return gate.id or gate.kind
