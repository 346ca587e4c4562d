"""What microcases write down: calls that must be refused, and sizes that must leave the candidate's tensors alone."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from labctl.frozen import FrozenModel, SafeName
from labctl.records.component_row import DrawnTensor, Place, RowRecord, TensorRecord


class State(FrozenModel):
    """What a microcase must leave as it was."""

    buffers: tuple[TensorRecord, ...]
    """All of the candidate's own tensors in this arm; `CASE.NAME`."""
    caches: tuple[TensorRecord, ...]
    """The candidate's caches."""
    inputs: tuple[TensorRecord, ...]
    """The inputs of the call."""


class Captured(FrozenModel):
    """One look at whether work is being captured, by two ways of asking."""

    asked: bool
    """What the public function says."""
    state: bool
    """What the capturing machinery itself says."""


class Canary(FrozenModel):
    """A sum captured in the same scope as the call, and replayed: only real capturing lets it follow a new operand."""

    operand: int
    """The operand while capturing."""
    captured: int
    """The sum after capturing."""
    replay_operand: int
    """The operand of the replay, from the nonce."""
    replayed: int
    """The sum after the replay: the replay's operand plus one."""


class MustRaiseRecord(FrozenModel):
    """A call that must be refused."""

    kind: Literal["must_raise"]
    """The microcase's kind."""
    name: SafeName
    """Its name."""
    arm: SafeName
    """The arm."""
    case: SafeName
    """The case."""
    row: PositiveInt
    """The number from which its inputs are seeded."""
    row_seed: NonNegativeInt
    """The seed of its inputs."""
    inputs: tuple[DrawnTensor, ...]
    """What the call was given."""
    condition: Literal["cuda_graph", "xpu_graph", "jit_trace"]
    """What captured: a device graph, or on CPUs, which have none, the tracer of torch.jit."""
    before: Captured
    """Right before capturing."""
    during: Captured
    """In it, right before the call."""
    after: Captured
    """Right after it."""
    exception: str | None
    """The type that was raised; null: none was."""
    message: str | None
    """Its whole message."""
    canary: Canary
    """That capturing was real."""
    state_before: State
    """Before the call."""
    state_after: State
    """After it."""


class MustStayInertRecord(FrozenModel):
    """A size at which the candidate must take the control path."""

    kind: Literal["must_stay_inert"]
    """The microcase's kind."""
    name: SafeName
    """Its name."""
    owned: tuple[Place, ...]
    """Own tensors of the candidate for this size, after the call."""
    state_before: State
    """Before the call; `inputs` of the row."""
    state_after: State
    """After it; the caches are those of the row."""
    row: RowRecord
    """The call, recorded like any other row."""


MicrocaseRecord = Annotated[MustRaiseRecord | MustStayInertRecord, Field(discriminator="kind")]
