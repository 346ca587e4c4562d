"""What a campaign file of kind `probe` says: one bounded collective over some ranks, and nothing else."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import FrozenModel
from labctl.prereg.campaign_head import CampaignHead
from labctl.prereg.field_types import EnvironmentName, Line

Backend = Literal["gloo", "nccl", "xccl"]


class Collective(FrozenModel):
    """The one collective."""

    operation: Literal["all_reduce"]
    """Which."""
    dtype: Literal["float32", "float64", "int64", "int32"]
    """The type of the elements."""
    elements: Annotated[int, Field(ge=1, le=1 << 30)]
    """How many."""
    expected: Literal["sum_of_ranks"]
    """Each rank brings its number plus one; every element must be the sum of all."""


class ProbeTimeouts(FrozenModel):
    """Bounds on the probe."""

    stage_s: Annotated[int, Field(ge=1, le=3600)]
    """Seconds for one stage of one rank."""
    total_s: Annotated[int, Field(ge=1, le=7200)]
    """Seconds for everything; what still runs then is killed."""


class ProbePreregistration(CampaignHead):
    """One probe, written in advance."""

    kind: Literal["probe"]
    """The campaign's kind."""
    ranks: Annotated[int, Field(ge=1, le=64)]
    """Processes, one a card."""
    backend: Backend
    """gloo, nccl or xccl."""
    collective: Collective
    """What the ranks do together."""
    timeouts: ProbeTimeouts
    """How long they may take."""
    environment: dict[EnvironmentName, Line] = Field(default_factory=dict)
    """What every rank's environment holds beside the fixed allow-list and what selects its card."""
    log_limit_mib: Annotated[int, Field(ge=1, le=4096)] = 16
    """The probe fails when a rank prints more than this."""
    authorizes: Annotated[tuple[Literal["probe_run"], ...], Field(min_length=1, max_length=1)]
    """What this packet allows, once."""

    @property
    def order(self) -> tuple[str, ...]:
        """The legs, in order: one, with all ranks in it."""
        return ("probe",)
