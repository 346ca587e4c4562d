"""The work orders of legs that start no server: one worker on one card, or the ranks of a probe."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.cards import Cards
from labctl.prereg.component_model import (
    Boundary,
    Buffer,
    Caches,
    Checkpoint,
    ComponentCase,
    DimensionName,
    Extent,
    Microcase,
)
from labctl.prereg.field_types import EnvironmentName
from labctl.prereg.host_profile import Devices
from labctl.prereg.probe_model import Backend, Collective, ProbeTimeouts
from labctl.records.devices import Card
from labctl.records.marker import Nonce
from labctl.records.order import StartPaths


class CardLimits(FrozenModel):
    """Bounds on one leg."""

    timeout_s: int
    """Seconds until every process of the leg has ended by itself; then it is killed."""
    stop_timeout_s: int
    """Seconds until what was asked to end has ended."""
    log_limit_bytes: int
    """Bytes that a process may print."""
    memory_limit_bytes: int | None
    """Bytes that the data of a process may grow to; null: not bounded."""
    silence_s: int
    """Seconds without a byte on the lifeline after which the leg stops its tree."""


class CardOrder(FrozenModel):
    """What both kinds of orders say."""

    packet_kind: Literal["real", "rehearsal"]
    """The packet's kind."""
    packet_sha256: Sha256
    """The packet."""
    marker_sha256: Sha256
    """The marker."""
    index: Annotated[int, Field(ge=1)]
    """The leg's place in the order, from 1."""
    leg: SafeName
    """The leg's name."""
    machine_id_sha256: Sha256
    """The only machine that may run this order."""
    boot_id: str
    """The boot in which the packet was consumed."""
    nonce: Nonce
    """This leg's nonce: digests that hold it cannot come from an earlier run."""
    interpreter: str
    """The registered interpreter."""
    argv: tuple[str, ...]
    """The argument list; for a probe without the rank, which comes last."""
    environment: dict[EnvironmentName, str]
    """The whole environment; for a probe without each rank's own."""
    paths: StartPaths
    """Folders."""
    limits: CardLimits
    """Bounds."""
    code: str
    """The exported worker side; absolute, outside the run."""
    inputs: dict[SafeName, Sha256]
    """Every exported file by its role in the packet."""
    selection: Cards
    """As registered."""
    devices: Devices
    """How cards are looked at."""
    discovery_sha256: Sha256
    """The bytes of the run's `host/devices.json`: every card, before any affinity."""


class ComponentWork(FrozenModel):
    """What the worker is to do, as registered."""

    checkpoint: Checkpoint | None
    """The weights."""
    arms: tuple[SafeName, ...]
    """The arms."""
    cases: tuple[ComponentCase, ...]
    """The sizes."""
    repeats: int
    """How often each runs."""
    seed: int
    """From which the seeds of rows follow."""
    dimensions: dict[DimensionName, Extent]
    """Shared extents."""
    buffers: tuple[Buffer, ...]
    """The owning tensors."""
    boundaries: tuple[Boundary, ...]
    """What is compared."""
    caches: Caches | None
    """What is written beside."""
    microcases: tuple[Microcase, ...]
    """Calls that must be refused, sizes that must stay inert."""


class ComponentOrder(CardOrder):
    """One card's leg of a component campaign."""

    schema_id: Literal["labctl/component-order/1"] = Field(default="labctl/component-order/1", alias="schema")
    """The format of this document."""
    kind: Literal["component"]
    """The leg's kind."""
    card: Card
    """The card, as the unfiltered discovery shows it."""
    card_index: Annotated[int, Field(ge=0)]
    """Its place among the campaign's cards, from 0: a part of every row's seed."""
    work: ComponentWork
    """What is to be done on it."""


class ProbeOrder(CardOrder):
    """The one leg of a probe."""

    schema_id: Literal["labctl/probe-order/1"] = Field(default="labctl/probe-order/1", alias="schema")
    """The format of this document."""
    kind: Literal["probe"]
    """The leg's kind."""
    address: Literal["127.0.0.1"]
    """Where the ranks meet."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """On which port."""
    ranks: int
    """How many."""
    backend: Backend
    """How they talk."""
    cards: tuple[Card, ...]
    """The card of each rank, as the unfiltered discovery shows it."""
    collective: Collective
    """What they do together."""
    timeouts: ProbeTimeouts
    """How long they may take."""
    rank_environment: tuple[dict[EnvironmentName, str], ...]
    """What each rank's environment holds beside the common one: its number, where to meet, and its card."""
