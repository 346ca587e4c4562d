"""What the ranks of a probe write: `rank-R.jsonl`, one line a stage, each stage at most once."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, TypeAdapter

from labctl.frozen import FrozenModel, Sha256
from labctl.records.lines import read_lines

STAGES = (
    "import-done",
    "device-set",
    "pg-initialised",
    "tensor-allocated",
    "all_reduce-start",
    "all_reduce-done",
    "verified",
    "teardown-done",
)
"""The stages of a rank, in order."""


class RankLine(FrozenModel):
    """What every line says."""

    schema_id: Literal["labctl/probe-stage/1"] = Field(default="labctl/probe-stage/1", alias="schema")
    """The format of this line."""
    rank: NonNegativeInt
    """The rank."""
    nonce: str
    """The leg's nonce, as ordered."""
    pid: PositiveInt
    """The rank's process."""
    wall_ns: NonNegativeInt
    """UTC, for labels."""
    mono_ns: NonNegativeInt
    """The monotonic clock, when the stage was done."""


class ImportDetail(FrozenModel):
    """torch is imported."""

    torch: str
    """Its version."""
    python: str
    """The interpreter's version."""
    order_sha256: Sha256
    """The digest of the order's bytes."""
    code_sha256: dict[str, Sha256]
    """Each exported file, hashed before torch was imported, by its role in the packet."""


class DeviceDetail(FrozenModel):
    """The rank has its device."""

    device: str
    """As torch names it."""
    visible: NonNegativeInt
    """How many devices of its type torch sees."""
    name: str
    """Its name."""
    uuid: str | None
    """Its UUID, as torch writes it; null: torch tells none."""
    cpus: tuple[NonNegativeInt, ...]
    """CPUs on which the process may run."""


class GroupDetail(FrozenModel):
    """The process group stands."""

    backend: str
    """As torch names it."""
    world_size: PositiveInt
    """How many ranks torch counts."""
    group_rank: NonNegativeInt
    """Which one torch says this is."""


class AllocatedDetail(FrozenModel):
    """The rank's tensor is filled."""

    dtype: str
    """Its element type."""
    elements: PositiveInt
    """How many elements."""
    data_ptr: PositiveInt
    """Its address."""
    sha256: Sha256
    """The digest of its bytes: element i is `(rank + 1) * (1 + (i + shift) % 251)`."""
    shift: Annotated[int, Field(ge=0, le=250)]
    """The nonce's first 8 bytes, big-endian, modulo 251."""


class EmptyDetail(FrozenModel):
    """Nothing beside the time."""


class VerifiedDetail(FrozenModel):
    """The result was compared, and is right; who judges compares the digest again."""

    sha256: Sha256
    """The digest of the result's bytes."""
    data_ptr: PositiveInt
    """Its address."""


class ImportDone(RankLine):
    """torch is imported."""

    stage: Literal["import-done"]
    """The stage."""
    detail: ImportDetail
    """What was seen."""


class DeviceSet(RankLine):
    """The rank has its device."""

    stage: Literal["device-set"]
    """The stage."""
    detail: DeviceDetail
    """What was seen."""


class GroupInitialised(RankLine):
    """The process group stands."""

    stage: Literal["pg-initialised"]
    """The stage."""
    detail: GroupDetail
    """What was seen."""


class TensorAllocated(RankLine):
    """The rank's tensor is filled."""

    stage: Literal["tensor-allocated"]
    """The stage."""
    detail: AllocatedDetail
    """What was seen."""


class ReduceStarted(RankLine):
    """Right before the collective."""

    stage: Literal["all_reduce-start"]
    """The stage."""
    detail: EmptyDetail
    """Nothing."""


class ReduceDone(RankLine):
    """The collective returned and the device is idle."""

    stage: Literal["all_reduce-done"]
    """The stage."""
    detail: EmptyDetail
    """Nothing."""


class ResultVerified(RankLine):
    """The result is right."""

    stage: Literal["verified"]
    """The stage."""
    detail: VerifiedDetail
    """What was seen."""


class TeardownDone(RankLine):
    """The process group is gone."""

    stage: Literal["teardown-done"]
    """The stage."""
    detail: EmptyDetail
    """Nothing."""


class FailedDetail(FrozenModel):
    """Why a rank could not reach a stage."""

    reaching: str
    """The stage that it was to reach."""
    exception: str
    """The type."""
    message: str
    """Its message, at most 2,000 characters."""


class RankFailed(RankLine):
    """The last line of a rank that could not go on."""

    stage: Literal["failed"]
    """No stage: the rank ended here."""
    detail: FailedDetail
    """Why."""


StageLine = Annotated[
    ImportDone
    | DeviceSet
    | GroupInitialised
    | TensorAllocated
    | ReduceStarted
    | ReduceDone
    | ResultVerified
    | TeardownDone
    | RankFailed,
    Field(discriminator="stage"),
]
_LINE: TypeAdapter[StageLine] = TypeAdapter(StageLine)


def read_rank(data: bytes, where: str) -> tuple[StageLine, ...]:
    """Read the bytes of a `rank-R.jsonl`; whether the stages are those of a clean rank is for who judges.

    Raises:
        MalformedRecord: with every problem of the file.
    """
    return read_lines(_LINE, data, where)
