"""What a campaign file of kind `component` says: one worker a card, a control and a candidate on the same inputs.

Shapes are products of dimensions, so that nobody types an expected stride or an offset in: analyzers derive them.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.campaign_head import CampaignHead, Dtype, Worker
from labctl.prereg.field_types import GateId, Line, RelativePath

DimensionName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Extent = Annotated[int, Field(ge=1, le=1 << 32)]
Product = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_]*(\*[a-z0-9][a-z0-9_]*)*$", max_length=200)]
Term = Extent | Product


class Checkpoint(FrozenModel):
    """Synthetic weights that the worker's own generator makes from a seed."""

    name: SafeName
    """Which generator of the worker."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    """The seed."""
    sha256: Sha256
    """The digest of the weights' canonical bytes, computed before the first row and after the last."""


class ComponentCase(FrozenModel):
    """One size at which control and candidate are compared."""

    name: SafeName
    """Its name in rows and verdicts."""
    values: dict[DimensionName, Extent]
    """Dimensions that this case gives; every case gives the same ones."""


class Buffer(FrozenModel):
    """One owning tensor, persistent in the candidate."""

    name: DimensionName
    """Its name."""
    shape: Annotated[tuple[Term, ...], Field(min_length=1, max_length=8)]
    """Each extent: an integer, a dimension, or a product such as `2*heads*head_size`."""
    dtype: Dtype
    """The type of its elements."""


class Selection(FrozenModel):
    """One index along one dimension: the view that a boundary is."""

    dim: Annotated[int, Field(ge=0, le=7)]
    """The dimension of the buffer."""
    index: Annotated[int, Field(ge=0)]
    """The index in it."""


class Boundary(FrozenModel):
    """A named place at which control and candidate are compared bit by bit."""

    name: DimensionName
    """Its name in rows and verdicts."""
    of: DimensionName
    """The buffer that it is, or is a view of."""
    select: Selection | None = None
    """The view; null: the whole buffer."""


class Caches(FrozenModel):
    """Tensors that the component writes into, one a layer; compared whole after each row."""

    count: Term
    """How many."""
    name: DimensionName
    """What they are called."""


class MustRaise(FrozenModel):
    """A call that must be refused, and leave everything as it was."""

    kind: Literal["must_raise"]
    """The microcase's kind."""
    name: SafeName
    """Its name."""
    exception: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$")]
    """The type of the exception, by its name."""
    message: Line
    """Its message, whole."""
    arm: SafeName
    """The arm in which it is called."""
    case: SafeName
    """The case in which it is called."""


class MustStayInert(FrozenModel):
    """A size at which the candidate must take the control path and touch none of its own buffers."""

    kind: Literal["must_stay_inert"]
    """The microcase's kind."""
    name: SafeName
    """Its name."""
    values: dict[DimensionName, Extent]
    """The dimensions, as a case would give them."""
    arm: SafeName
    """The arm in which it is called."""


Microcase = Annotated[MustRaise | MustStayInert, Field(discriminator="kind")]


class RowsExact(FrozenModel):
    """Every boundary and every cache of every row is equal, bit by bit."""

    kind: Literal["rows_exact"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class Layouts(FrozenModel):
    """Shape, stride, storage offset, type and device are those that the declaration gives."""

    kind: Literal["layouts"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class Pointers(FrozenModel):
    """The candidate's buffers stay where they are from use to use, and overlap nothing."""

    kind: Literal["pointers"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class WeightsUnchanged(FrozenModel):
    """The weights are those of the pinned digest before the rows and after them."""

    kind: Literal["weights_unchanged"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class MicrocasesHold(FrozenModel):
    """Every microcase did what it must, and changed nothing."""

    kind: Literal["microcases"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class OwnCard(FrozenModel):
    """Each leg saw exactly its own card."""

    kind: Literal["devices"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


ComponentGate = Annotated[
    RowsExact | Layouts | Pointers | WeightsUnchanged | MicrocasesHold | OwnCard, Field(discriminator="kind")
]


class ComponentPreregistration(CampaignHead):
    """One component campaign, written in advance."""

    kind: Literal["component"]
    """The campaign's kind."""
    worker: Worker
    """What each leg runs."""
    files: tuple[RelativePath, ...] = ()
    """Small files that the worker may read; paths below campaigns/, pinned by digest."""
    checkpoint: Checkpoint | None = None
    """The weights; null: the component has none."""
    arms: Annotated[tuple[SafeName, ...], Field(min_length=1, max_length=16)]
    """Variants of the data; in each, every row compares control and candidate on the same input."""
    cases: Annotated[tuple[ComponentCase, ...], Field(min_length=1, max_length=256)]
    """The sizes."""
    repeats: Annotated[int, Field(ge=1, le=1000)]
    """How often each case runs in each arm, each time with fresh inputs."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    """From which the seed of each row is derived."""
    dimensions: dict[DimensionName, Extent] = Field(default_factory=dict)
    """Named extents that all cases share."""
    buffers: Annotated[tuple[Buffer, ...], Field(min_length=1, max_length=64)]
    """The owning tensors."""
    boundaries: Annotated[tuple[Boundary, ...], Field(min_length=1, max_length=64)]
    """Where control and candidate are compared."""
    caches: Caches | None = None
    """What is written beside the buffers; null: nothing."""
    microcases: tuple[Microcase, ...] = ()
    """Calls that must be refused, and sizes that must stay inert."""
    gates: Annotated[tuple[ComponentGate, ...], Field(min_length=1)]
    """What must hold; identity, complete rows and the links between records are always judged as well."""
    authorizes: Annotated[tuple[Literal["component_run"], ...], Field(min_length=1, max_length=1)]
    """What this packet allows, once."""

    @property
    def row_count(self) -> int:
        """Rows of one leg."""
        return len(self.arms) * len(self.cases) * self.repeats

    @property
    def order(self) -> tuple[str, ...]:
        """The legs, in order: one a card."""
        return tuple(f"card{index}" for index in range(self.cards.count))


def component_gate_id(gate: ComponentGate) -> str:
    """The id of a gate: its own, or its kind."""
    return gate.id or gate.kind
