"""The sole difference between the arms, and the proof that it was read and executed."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from labctl.frozen import FrozenModel, SafeName
from labctl.prereg.field_types import EnvironmentName, GroupValues, Line, RelativePath, is_absent, kind_by_key


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
    control: LineState | GroupValues
    """What A must show: `absent`, `present`, or what named groups hold in every such line."""
    candidate: LineState | GroupValues
    """The same for B."""
    ranks: Annotated[int, Field(ge=1, le=4096)] | None = Field(default=None, exclude_if=is_absent)
    """The ranks 0, 1, … that must each print the line where it must be there; the expression names the group `rank`."""


Proof = Annotated[
    Annotated[CounterProof, Tag("counter")] | Annotated[LogProof, Tag("log")],
    Discriminator(
        kind_by_key("counter", "log"),
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


class BinariesTreatment(FrozenModel):
    """The arms differ in one folder of compiled files, `{binaries}` in command and environment."""

    binaries: SafeName
    """What the set is called."""
    control: SafeName
    """A's folder: a key of the host profile's `binaries`."""
    candidate: SafeName
    """B's folder: another key."""
    control_manifest: RelativePath
    """`sha256sum` lines of every file of A's folder, relative to it; a path below campaigns/."""
    candidate_manifest: RelativePath
    """The same for B's."""
    proof: Proof
    """Positive evidence in one arm and negative in the other."""

    def manifests(self) -> dict[str, str]:
        """Both manifests by the key of their folder."""
        return {self.control: self.control_manifest, self.candidate: self.candidate_manifest}


def _treatment_kind(value: Any) -> str | None:  # noqa: ANN401 (pydantic passes raw input)
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    return next((kind for kind in ("argument", "environment", "binaries") if kind in keys), None)


Treatment = Annotated[
    Annotated[ArgumentTreatment, Tag("argument")]
    | Annotated[EnvironmentTreatment, Tag("environment")]
    | Annotated[BinariesTreatment, Tag("binaries")],
    Discriminator(
        _treatment_kind,
        custom_error_type="treatment_kind",
        custom_error_message="a treatment needs exactly one of the keys `argument`, `environment` and `binaries`",
    ),
]
