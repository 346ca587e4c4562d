"""What campaign files of kinds `component` and `probe` say alike: who asks what, where, and by whose leave."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from labctl.frozen import FrozenModel, SafeName
from labctl.prereg.cards import Cards
from labctl.prereg.field_types import CampaignId, EnvironmentName, Line, RelativePath
from labctl.prereg.model import CampaignClass, HostCheck, Reviews
from labctl.prereg.sources import Source

Dtype = Literal[
    "bfloat16", "float16", "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"
]  # fmt: skip


class CampaignHead(FrozenModel):
    """What every campaign without a server says of itself."""

    labctl: Literal[1]
    """The version of this format."""
    id: CampaignId
    """The campaign's name: lower-case letters, digits and hyphens."""
    title: Line
    """One line for people."""
    author: Annotated[str, StringConstraints(pattern=r"^[^<>\r\n]+ <[^<>@\s]+@[^<>@\s]+>$")]
    """`Name <mail@host>`; the author cannot review."""
    question: Line
    """What the campaign is to answer."""
    campaign_class: Annotated[CampaignClass, Field(alias="class")]
    """exploratory or record."""
    host: RelativePath
    """The host profile; a path below campaigns/."""
    interpreter: SafeName
    """A key of the host profile's `interpreters`: the Python, with torch, that runs the worker."""
    sources: tuple[Source, ...] = ()
    """Engine code that is verified in place before each leg and after it."""
    cards: Cards
    """The cards."""
    reviews: Reviews
    """Who must approve."""
    host_checks: tuple[HostCheck, ...] = ()
    """Commands that freezing runs in the exported snapshot."""
    rehearsal_waived: Line | None = None
    """For class record: the reason why no rehearsal of what the packet runs is needed."""
    excluded: tuple[SafeName, ...] = ()
    """What the packet does not allow, for readers."""


class Worker(FrozenModel):
    """The worker's file, and the bounds of one leg."""

    file: RelativePath
    """The worker; a path below campaigns/. It is pinned by digest, and a copy of it is run."""
    timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 600
    """Seconds for one leg; after that its worker is killed and the leg has failed."""
    environment: dict[EnvironmentName, Line] = Field(default_factory=dict)
    """What the worker's environment holds beside the fixed allow-list and what selects its card."""
    log_limit_mib: Annotated[int, Field(ge=1, le=4096)] = 16
    """The leg fails when the worker prints more than this."""
    memory_mib: Annotated[int, Field(ge=64)] | None = None
    """The worker's data may grow to this; null: not bounded."""
