"""What two sealed starts gave for the same requests."""

from typing import Literal

from pydantic import Field

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.records.verdict import Figure


class ComparedStart(FrozenModel):
    """One of the two starts."""

    side: Literal["first", "second"]
    """Under which name its figures stand."""
    run: SafeName
    """The sealed run."""
    seal_sha256: Sha256
    """SHA-256 of its seal statement."""
    leg: SafeName
    """The start."""
    campaign: SafeName
    """The campaign's id."""
    engine: str
    """Engine and version, as served."""


class StartComparison(FrozenModel):
    """A comparison that was registered by nobody: figures, and never a verdict."""

    schema_id: Literal["labctl/start-comparison/1"] = Field(default="labctl/start-comparison/1", alias="schema")
    """The format of this document."""
    starts: tuple[ComparedStart, ComparedStart]
    """The two starts."""
    rows: int
    """Requests of each."""
    figures: tuple[Figure, ...]
    """Speeds, and what the second start gave beside the first."""
    doubts: tuple[str, ...]
    """What differs beside what is compared, one line each."""
