"""A campaign of any kind: the union of the three preregistrations."""

from typing import Annotated

from pydantic import Field

from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.model import Preregistration
from labctl.prereg.probe_model import ProbePreregistration

AnyPreregistration = Annotated[
    Preregistration | ComponentPreregistration | ProbePreregistration, Field(discriminator="kind")
]
NativePreregistration = ComponentPreregistration | ProbePreregistration
"""Campaigns that start no server: their legs are processes on cards."""
