"""Gates over whole starts: what a drift, chance or a small effect must not pass for; one model a kind."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import DecimalText, FrozenModel
from labctl.prereg.field_types import GateId, is_absent


class Drift(FrozenModel):
    """The first and last start of each arm lie close together; else the host changed, and the effect means nothing."""

    kind: Literal["drift"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    max_percent: DecimalText | None = Field(default=None, exclude_if=is_absent)
    """The faster of the two over the slower, at most; null: half of the planned effect, 1 at most."""


class Consistency(FrozenModel):
    """Within the starts of this run the candidate is faster, prompt by prompt; it says nothing of other starts."""

    kind: Literal["consistency"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    min_row_wins: Annotated[int, Field(ge=1, le=10_000)]
    """Rows of each pair in which the candidate must be strictly faster; a tie is a loss."""
    confidence: DecimalText = "0.95"
    """The Hodges-Lehmann interval of this confidence must lie above 0."""


class Separation(FrozenModel):
    """The slowest candidate start is faster than the fastest control start, by a margin."""

    kind: Literal["separation"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    margin_percent: DecimalText | None = Field(default=None, exclude_if=is_absent)
    """By how much, strictly; null: half of the planned effect."""


class Effect(FrozenModel):
    """The lower confidence bound of the effect between starts is above the margin."""

    kind: Literal["effect"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    margin_percent: DecimalText = "0"
    """What the bound must exceed, strictly."""
    confidence: DecimalText = "0.95"
    """The confidence of the one-sided bound."""


class Equivalence(FrozenModel):
    """The arms are equally fast within a limit: two one-sided tests say so; the silence of one test never does."""

    kind: Literal["equivalence"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    within_percent: DecimalText
    """The limit: the interval of the effect must lie between 1/(1 + this/100) and 1 + this/100, strictly."""
    confidence: DecimalText = "0.95"
    """The confidence of each of the two one-sided tests."""


StatisticsGate = Drift | Consistency | Separation | Effect | Equivalence
WINS_AT_1_PERCENT, ROWS_AT_1_PERCENT = 12, 13
"""Of 13 rows: the fewest wins with a one-sided sign test below 1 %."""


def record_rules(min_row_wins: int = WINS_AT_1_PERCENT) -> tuple[StatisticsGate, ...]:
    """The default rule set for records, beside the floor of the decision; margins follow from the planned effect."""
    return (
        Drift(kind="drift"),
        Consistency(kind="consistency", min_row_wins=min_row_wins),
        Separation(kind="separation"),
        Effect(kind="effect"),
    )
