"""What can be seen in evidence that labctl neither measured nor sealed."""

from typing import Literal

from pydantic import Field

from labctl.frozen import FrozenModel
from labctl.records.verdict import Figure


class Check(FrozenModel):
    """One identity between two things that the evidence says."""

    what: str
    """What must be equal, or must hold."""
    expected: str
    """What the one side says."""
    observed: str
    """What the other says."""
    is_met: bool
    """Whether it holds."""


class Finding(FrozenModel):
    """Something that a reader must know."""

    where: str
    """The file."""
    what: str
    """One line."""
    count: int = 1
    """How often."""


class EvidenceView(FrozenModel):
    """A plain view of a folder of evidence; it authorizes nothing."""

    schema_id: Literal["labctl/evidence-view/1"] = Field(default="labctl/evidence-view/1", alias="schema")
    """The format of this document."""
    folder: str
    """What was looked at."""
    is_sealed_run: Literal[False] = False
    """Nothing of this was measured or sealed by labctl."""
    files: tuple[str, ...]
    """Files that are there, relative to the folder."""
    missing: tuple[str, ...]
    """What is not there, and so could not be looked at."""
    facts: tuple[tuple[str, str], ...]
    """What the evidence says of itself."""
    metrics: tuple[Figure, ...]
    """Computed here, by the formulas that judge sealed runs."""
    checks: tuple[Check, ...]
    """What must agree."""
    topology: tuple[str, ...]
    """What each rank says of its graphs, one line each."""
    findings: tuple[Finding, ...]
    """What a reader must know."""
