"""Which cards a component or probe campaign runs on."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from labctl.frozen import FrozenModel

DISCOVER: Literal["discover"] = "discover"

CardIdentity = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9:,/-]{0,127}$")]


class CardVendor(StrEnum):
    """Who makes the cards, and so which tool tells about them."""

    CPU = "cpu"
    NVIDIA = "nvidia"
    INTEL = "intel"


class Cards(FrozenModel):
    """The cards of a campaign; each leg sees exactly one of them."""

    vendor: CardVendor
    """Who makes them; `cpu`: sets of CPUs stand in for cards."""
    count: Annotated[int, Field(ge=1, le=16)]
    """How many."""
    identities: Literal["discover"] | tuple[CardIdentity, ...]
    """`discover`: the first found, by bus address; or the stable identity of each, in the order of the legs."""
