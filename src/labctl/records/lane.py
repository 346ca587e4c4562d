"""Lanes: what is being improved, so that the attempts at it can be counted whatever each campaign is called."""

from typing import Annotated

from pydantic import Field

from labctl.digest import sha256_hex
from labctl.frozen import FrozenModel, Sha256
from labctl.prereg.field_types import Line, MetricId


class LaneKey(FrozenModel):
    """What a lane is: what is served, the rate that counts, and the machine."""

    target: Line
    """`model:` and the digest of the target model's manifest, or `engine:` where no model is declared."""
    metric: MetricId
    """The decision's headline."""
    machine_id_sha256: Sha256
    """Digest of the machine id."""

    @property
    def sha256(self) -> str:
        """The lane's id: the digest of its canonical bytes."""
        return sha256_hex(self.canonical())


class Lane(FrozenModel):
    """The lane of a run, and how many attempts at it there have been."""

    key: LaneKey
    """Which lane."""
    attempt: Annotated[int, Field(ge=1)]
    """This run's place among the consumed packets of the lane, counted from the ledger as the packet was consumed."""
