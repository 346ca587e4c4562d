"""What a preregistration says: the whole grammar of a campaign file of kind `endpoint`.

There is one service and one treatment; nothing else can differ between the arms, because there is no place to write it.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from labctl.frozen import DecimalText, FrozenModel, SafeName
from labctl.prereg.designs import Design, Mirror
from labctl.prereg.field_types import (
    CampaignId,
    EnvironmentName,
    LegName,
    Line,
    MetricId,
    Number,
    RelativePath,
    is_absent,
)
from labctl.prereg.gate_kinds import Gate
from labctl.prereg.sources import ModelSource, Source
from labctl.prereg.treatment_kinds import Treatment

MOST_LEGS = 24


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


class Api(StrEnum):
    """Which of the two generation endpoints is used."""

    COMPLETIONS = "completions"
    CHAT = "chat"


class Expectation(FrozenModel):
    """What the author expects, said in advance and scored afterwards."""

    effect_percent: Annotated[tuple[Number, ...], Field(min_length=2, max_length=2)]
    """Lower and upper bound of the expected gain of B over A, in percent."""


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


def _order_or_design(schema: dict[str, Any]) -> None:
    """A file may name a design in place of its order; the loader writes the order out."""
    schema.pop("required")  # it is the only field without a default
    schema["anyOf"] = [{"required": ["order"]}, {"required": ["design"]}]


class Schedule(FrozenModel):
    """In which order the starts run."""

    model_config = ConfigDict(json_schema_extra=_order_or_design)

    order: Annotated[tuple[LegName, ...], Field(min_length=1, max_length=MOST_LEGS)]
    """Such as `[A1, B1, B2, A2]`; written out by the loader where a `design` is named."""
    design: Design | None = Field(default=None, exclude_if=is_absent)
    """A named order, in place of `order`."""
    mirror: Mirror | None = Field(default=None, exclude_if=is_absent)
    """`sealed_coin`: the marker's nonce decides whether the order runs, or its mirror; null: as registered."""
    stop_after_first_pair: bool = False
    """Whether the analyzers judge the first two legs before the others may run."""
    wait_s: Annotated[int, Field(ge=0, le=3600)] = 0
    """Seconds between the stop of a start and the next."""


class TeacherOracle(FrozenModel):
    """Expected tokens from a file."""

    teacher: RelativePath
    """An oracle file; a path below campaigns/."""


class Decision(FrozenModel):
    """Which number counts, and what it must exceed."""

    headline: MetricId
    """The metric whose median over rows is a start's headline."""
    reported_value: Literal["lower_candidate_start", "confidence_bound"]
    """Which value counts: the lower of two candidate starts; of more, the 95 % lower bound of their mean."""
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
