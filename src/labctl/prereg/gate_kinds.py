"""What a preregistration may demand: one model a kind of gate."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import DecimalText, FrozenModel
from labctl.prereg.answer_gates import AnswerGate
from labctl.prereg.field_types import GateId, GroupValues, Line, MetricId, RelativePath, is_absent
from labctl.prereg.start_gates import OutputGate, Roofline, ServerGate
from labctl.prereg.statistics_gates import StatisticsGate


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
    """How many lines must match, of each rank where `ranks` says how many there are; null: at least one."""
    ranks: Annotated[int, Field(ge=1, le=4096)] | None = Field(default=None, exclude_if=is_absent)
    """The ranks 0, 1, … that must each print the line; the expression names the group `rank`."""
    groups: GroupValues | None = Field(default=None, exclude_if=is_absent)
    """What named groups hold in every such line, such as `{graphs: 146, eager_breaks: 145}`."""
    control: GroupValues | None = Field(default=None, exclude_if=is_absent)
    """The same for A alone."""
    candidate: GroupValues | None = Field(default=None, exclude_if=is_absent)
    """The same for B alone."""


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
    good_log: RelativePath | None = Field(default=None, exclude_if=is_absent)
    """A log that is as it must be, a path below campaigns/; freezing holds the patterns against it."""
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
    metric: MetricId | None = Field(default=None, exclude_if=is_absent)
    """The metric of the reference; the headline's where absent, which needs a decision that names it."""
    reference: DecimalText
    """Tokens per second, as exact text."""
    within_percent: DecimalText
    """The allowed distance of each control's headline from the reference, in percent of the reference."""


LegGate = (
    ExactTokens
    | CrossLegExact
    | AnswerGate
    | Cold
    | Accounting
    | CleanLog
    | OutputGate
    | ServerGate
    | Pair
    | ControlNear
    | Roofline
)
Gate = Annotated[LegGate | StatisticsGate, Field(discriminator="kind")]


def gate_id(gate: Gate) -> str:
    """The id of a gate: its own, or its kind."""
    return gate.id or gate.kind
