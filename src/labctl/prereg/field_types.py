"""Constrained words and numbers that the fields of a campaign file are made of."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from labctl.frozen import DecimalText

CampaignId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


LegName = Annotated[str, StringConstraints(pattern=r"^[AB][1-9][0-9]?$")]


GateId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]


RelativePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]


EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$", max_length=2000)]


Number = Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | DecimalText


GroupName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]
GroupValues = Annotated[dict[GroupName, int | Line], Field(min_length=1)]
"""What the named groups of a regular expression must hold, as text; a whole number stands for its digits."""
PLACEHOLDERS = ("{python}", "{model:NAME}", "{host}", "{port}", "{nonce}", "{leg_dir}", "{cache_dir}", "{binaries}")


class MetricId(StrEnum):
    """Rates that a gate or a headline may name; formulas stand in the metric registry."""

    DECODE_RATE_CONVENTIONAL_1_100 = "decode_rate_conventional_1_100"
    DECODE_RATE_LEGACY_100_1_100 = "decode_rate_legacy_100_1_100"
    DECODE_RATE_CHUNKED_1_100 = "decode_rate_chunked_1_100"
    DECODE_RATE_FULL = "decode_rate_full"
    WALL_RATE = "wall_rate"


def is_absent(value: object) -> bool:
    """Fields that came later are left out where unused, so that earlier packets keep their one canonical form."""
    return value is None


def kind_by_key(*kinds: str) -> Callable[[Any], str | None]:
    """A function that says which of these kinds is a key of raw input, or a field of a model; None without any."""

    def kind(value: Any) -> str | None:  # noqa: ANN401 (pydantic passes raw input)
        keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
        return next((one for one in kinds if one in keys), None)

    return kind
