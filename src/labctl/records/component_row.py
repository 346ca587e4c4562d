"""One line of a component's `rows.jsonl`: two tensor records a boundary and a cache, on the same fresh inputs.

Equality is never a flag here: whoever judges compares the digests.
"""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, StringConstraints, TypeAdapter

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.records.lines import read_lines

HexBits = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){1,16}$")]
Base64 = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]+={0,2}$", max_length=2732)]
TensorName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.]{0,127}$")]


class Place(FrozenModel):
    """Where a tensor lies and how, without its content."""

    name: TensorName
    """Its name."""
    shape: tuple[NonNegativeInt, ...]
    """Extents."""
    stride: tuple[NonNegativeInt, ...]
    """Strides in elements."""
    dtype: str
    """The element type, without `torch.`."""
    device: str
    """The device, as torch names it."""
    storage_offset: NonNegativeInt
    """The first element's place in the storage, in elements."""
    data_ptr: NonNegativeInt
    """The first element's address."""
    storage_ptr: NonNegativeInt
    """The storage's address."""
    storage_bytes: NonNegativeInt
    """The storage's size."""


class TensorRecord(Place):
    """A tensor: where it lies, how, and the digest of its raw contiguous bytes."""

    bytes: NonNegativeInt
    """Bytes of its elements."""
    sha256: Sha256
    """SHA-256 of its elements in row-major order."""


class UniformDraw(FrozenModel):
    """Elements `(2b + 1) * 2**exponent`, b the signed bytes of SHAKE-256 of `SEED/NAME`; exact in every float type."""

    kind: Literal["uniform"]
    """The draw's kind."""
    exponent: Annotated[int, Field(ge=-20, le=8)]
    """The power of two."""
    offset: Literal[0, 1]
    """Added to every element; 1 for weights of norms."""


class DistinctDraw(FrozenModel):
    """The first of 0 … below-1, ordered by their 8-byte big-endian keys from SHAKE-256 of `SEED/NAME`."""

    kind: Literal["distinct"]
    """The draw's kind."""
    below: PositiveInt
    """The bound."""


class ConsecutiveDraw(FrozenModel):
    """`start, start + 1, …`: start is the first 8 bytes (big-endian) of SHAKE-256 of `SEED/NAME`, modulo `below`."""

    kind: Literal["consecutive"]
    """The draw's kind."""
    below: PositiveInt
    """The bound of the first one."""


Draw = Annotated[UniformDraw | DistinctDraw | ConsecutiveDraw, Field(discriminator="kind")]


class DrawnTensor(FrozenModel):
    """A tensor that the seed gives, and how: whoever judges draws it again."""

    draw: Draw
    """How its elements follow from the seed."""
    stream: str
    """What SHAKE-256 is taken of, `SEED/NAME`, ASCII."""
    tensor: TensorRecord
    """The tensor."""


class FirstDifference(FrozenModel):
    """The first element, row-major, at which candidate and control differ."""

    index: tuple[NonNegativeInt, ...]
    """Where."""
    expected_bits: HexBits
    """The control's element, most significant byte first."""
    actual_bits: HexBits
    """The candidate's element, most significant byte first."""
    differing_elements: PositiveInt
    """How many elements differ in all."""


class BoundaryRecord(FrozenModel):
    """One boundary of one row."""

    name: TensorName
    """The boundary."""
    control: TensorRecord
    """What the control had there."""
    candidate: TensorRecord
    """What the candidate had there."""
    challenge_sha256: Sha256
    """SHA-256 of the candidate's bytes and then `/NONCE/ROW`: whoever has only an earlier digest cannot make it."""
    first_difference: FirstDifference | None
    """Where they differ; null: nowhere."""


class CacheRecord(BoundaryRecord):
    """One cache after one row; before each row all caches hold what they held at first."""

    index: NonNegativeInt
    """The cache's number, as a layer's."""
    rest_sha256: Sha256
    """SHA-256 of the candidate's cache with the row's slots put back: the first digest, where nothing else changed."""


class RawSample(FrozenModel):
    """Raw bytes of the candidate, from which a reader rebuilds a whole cache and its two digests."""

    cache: NonNegativeInt
    """Which cache; the nonce and the row choose it."""
    base64: Base64
    """The row's slots of it, in the order of the slots, each with all other dimensions row-major."""


class RowRecord(FrozenModel):
    """One line of `rows.jsonl`."""

    schema_id: Literal["labctl/component-row/1"] = Field(default="labctl/component-row/1", alias="schema")
    """The format of this line."""
    row: PositiveInt
    """Its number, from 1."""
    arm: SafeName
    """The arm."""
    case: SafeName
    """The case, or the microcase whose row it is."""
    repeat: PositiveInt
    """Which repeat, from 1."""
    row_seed: NonNegativeInt
    """The seed of this row."""
    inputs: tuple[DrawnTensor, ...]
    """What both sides were given."""
    boundaries: tuple[BoundaryRecord, ...]
    """Boundaries, in the order of the declaration."""
    caches: tuple[CacheRecord, ...]
    """Caches, by number."""
    buffers: tuple[Place, ...]
    """The candidate's own tensors for this case after the row, by name."""
    sample: RawSample | None
    """Raw bytes, where the row's slots of one cache take at most 2 KiB."""
    inputs_after: tuple[Sha256, ...]
    """Digests of the inputs after both sides ran, in the order of `inputs`."""
    started_mono_ns: NonNegativeInt
    """When the row began."""
    ended_mono_ns: NonNegativeInt
    """When both sides had run and were recorded."""


_ROW: TypeAdapter[RowRecord] = TypeAdapter(RowRecord)


def read_rows(data: bytes, where: str) -> tuple[RowRecord, ...]:
    """Read the bytes of a `rows.jsonl`; every line is whole and in canonical form.

    Raises:
        MalformedRecord: with every problem of the file.
    """
    return read_lines(_ROW, data, where)
