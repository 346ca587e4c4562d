"""Gates over what each start printed, counted and left behind, one model a kind."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import DecimalText, FrozenModel
from labctl.prereg.field_types import GateId, Line

MAX_COUNT = 1_000_000_000
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Bytes = Annotated[int, Field(ge=1, le=1 << 60)]


class DegenerateOutput(FrozenModel):
    """No row is filled by one token or by a short cycle of tokens."""

    kind: Literal["degenerate_output"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    max_rows: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """Rows of a start that may be so."""


class LongThenNext(FrozenModel):
    """Each row that follows an output of full length equals the oracle: nothing of the long one is left behind."""

    kind: Literal["long_then_next"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    min_boundaries: Count = 1
    """How often a start must come past such a place; a start that does not is not evaluated."""


class Rollover(FrozenModel):
    """Each row over a prompt of at least a registered length equals the oracle."""

    kind: Literal["rollover"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    min_prompt_tokens: Count
    """From this many prompt tokens on, a row counts as one."""
    min_rows: Count = 1
    """How many of them a start must have; a start that has fewer is not evaluated."""


class MovingDifference(FrozenModel):
    """No row's first difference from the oracle lies elsewhere in another start of the same arm."""

    kind: Literal["moving_difference"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class SurvivalShape(FrozenModel):
    """Later positions of a draft are accepted less often than the first: what is flat was not verified."""

    kind: Literal["survival_shape"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    max_last_over_first: DecimalText = "0.9"
    """The last position's accepted tokens, at most, as a share of the first's."""
    min_positions: Annotated[int, Field(ge=2, le=1000)] = 4
    """With fewer positions the share says nothing, and a start is not evaluated."""


class Acceptance(FrozenModel):
    """Where a start speculates, enough of what is drafted is accepted."""

    kind: Literal["acceptance"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    min_percent: DecimalText
    """Accepted tokens, at least, in percent of drafted tokens; more than 0."""


class KvCapacity(FrozenModel):
    """The cache of keys and values holds enough tokens, and as many in every start of an arm."""

    kind: Literal["kv_capacity"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    min_tokens: Count
    """Tokens that the cache must hold."""


class ResidentMemory(FrozenModel):
    """The processes of a start stay within a registered size."""

    kind: Literal["resident_memory"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    max_bytes: Bytes
    """Resident memory, at most, between any two rows; pages that processes share count in each."""


class SteadyHost(FrozenModel):
    """Between any two rows of any start the machine is within registered bounds; at least one is said."""

    kind: Literal["steady_host"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    max_load: DecimalText | None = None
    """The load average over a minute, at most; what the start itself runs counts."""
    min_memory_available_bytes: Bytes | None = None
    """Memory that the kernel can give, at least."""
    min_cpu_mhz: Count | None = None
    """The clock of every CPU, at least; a host that does not say it is not evaluated."""


class Roofline(FrozenModel):
    """No start is faster than the memory can be read: such a speed would measure something else."""

    kind: Literal["roofline"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""
    bytes_per_second: DecimalText
    """How fast memory can be read, as exact text."""
    bytes_per_token: DecimalText
    """What must be read for one token, as exact text."""
    source: Line
    """Where the two numbers come from."""
    max_percent: DecimalText = "100"
    """The headline, at most, in percent of bytes_per_second / bytes_per_token."""


class PostflightClean(FrozenModel):
    """Every process of a start ended when it was asked, and left nothing: no process, socket or shared memory."""

    kind: Literal["postflight"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


OutputGate = DegenerateOutput | LongThenNext | Rollover | MovingDifference
"""Gates over tokens."""
ServerGate = SurvivalShape | Acceptance | KvCapacity | ResidentMemory | SteadyHost | PostflightClean
"""Gates over counters, logs and processes."""
