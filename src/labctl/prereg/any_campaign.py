"""A campaign of any kind: the union of the three preregistrations."""

from typing import Annotated, assert_never

from pydantic import Field

from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.designs import drawn_order
from labctl.prereg.model import Preregistration, Schedule
from labctl.prereg.probe_model import ProbePreregistration

AnyPreregistration = Annotated[
    Preregistration | ComponentPreregistration | ProbePreregistration, Field(discriminator="kind")
]
CardPreregistration = ComponentPreregistration | ProbePreregistration
"""Campaigns that start no server: their legs are processes on cards."""


def registered_order(said: AnyPreregistration) -> tuple[str, ...]:
    """The legs in the registered order."""
    match said:
        case Preregistration():
            return said.schedule.order
        case ComponentPreregistration() | ProbePreregistration():
            return said.order
        case _:
            assert_never(said)


def order_for(said: AnyPreregistration, nonce: str) -> tuple[str, ...]:
    """The legs in the order in which they run: as registered, or the mirror that a sealed coin chose."""
    order = registered_order(said)
    return drawn_order(order, said.schedule.mirror, nonce) if isinstance(said, Preregistration) else order


def schedule_of(said: AnyPreregistration) -> Schedule | None:
    """The registered schedule; None for a campaign whose legs follow from its cards."""
    return said.schedule if isinstance(said, Preregistration) else None
