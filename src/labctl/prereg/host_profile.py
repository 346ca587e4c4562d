"""What a host profile says: roots, storage rules, and every machine path by key."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from labctl.frozen import FrozenModel, SafeName
from labctl.prereg.cards import Cards
from labctl.prereg.field_types import EnvironmentName, Line, is_absent

MachinePath = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$", max_length=1024)]
Percent = Annotated[int, Field(ge=1, le=100)]


def _is_empty(value: object) -> bool:
    """What came later is left out where unused, so that earlier packets keep their one canonical form."""
    return not value


class Roots(FrozenModel):
    """Where labctl writes; a relative path starts at the top of the campaign repository."""

    authorization: MachinePath
    """Packets, markers and the ledger."""
    runs: MachinePath
    """Runs, and rehearsals below `rehearsals/`."""
    analyses: MachinePath
    """Analyses."""
    scratch: MachinePath
    """Snapshots and the private folders of starts; emptied by labctl, so give it nothing else."""


class Storage(FrozenModel):
    """What the file systems of the roots must be."""

    allowed: Annotated[tuple[Literal["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs"], ...], Field(min_length=1)]
    """File-system types; overlay and tmpfs count for class exploratory only."""
    min_free_mib: Annotated[int, Field(ge=16)] = 256
    """Free space that preflight demands on the runs root."""
    trusted_anchor: MachinePath = "."
    """The folder up to which ownership and modes are checked."""


class Network(FrozenModel):
    """Where servers listen."""

    address: Literal["127.0.0.1"]
    """The literal loopback address."""
    port: Annotated[int, Field(ge=0, le=65535)]
    """The port; 0: a free one for each start."""


class Idle(FrozenModel):
    """When the host counts as idle."""

    window_s: Annotated[int, Field(ge=0, le=3600)]
    """Seconds over which load is measured before the first start; 0: not measured, and the record says so."""
    max_cpu_percent: Percent
    """The highest share of all CPUs that other processes may use in the window."""


class Devices(FrozenModel):
    """How cards are looked at, and when they count as free."""

    xpu_smi: MachinePath = "/usr/bin/xpu-smi"
    """Intel's tool: the program itself, no wrapper."""
    timeout_s: Annotated[int, Field(ge=1, le=600)] = 30
    """Seconds after which a tool that does not answer is given up."""
    max_memory_used_mib: Annotated[int, Field(ge=0)] = 1024
    """Device memory that may be in use before a start."""
    memory_slack_mib: Annotated[int, Field(ge=0)] = 64
    """By how much more may be in use after a leg than before it."""
    tolerated_processes: tuple[Line, ...] = ("nvidia-persistenced",)
    """Names of services that may hold a card open all the time."""
    idle_cards: Cards | None = None
    """Cards that must be free before an endpoint campaign starts; null: none."""


class HostProfile(FrozenModel):
    """One machine, or one kind of machine."""

    labctl: Literal[1]
    """The version of this format."""
    kind: Literal["host"]
    """The file's kind."""
    id: SafeName
    """The profile's name."""
    roots: Roots
    """Where labctl writes."""
    storage: Storage
    """What the file systems must be."""
    network: Network
    """Where servers listen."""
    idle: Idle
    """When the host counts as idle."""
    interpreters: Annotated[dict[SafeName, MachinePath], Field(min_length=1)]
    """Python interpreters by key; `self` runs labctl; a relative path starts at the campaign repository's top."""
    sources: dict[SafeName, MachinePath] = Field(default_factory=dict)
    """Git work trees by key."""
    models: dict[SafeName, MachinePath] = Field(default_factory=dict)
    """Model folders by key."""
    binaries: dict[SafeName, MachinePath] = Field(default_factory=dict, exclude_if=_is_empty)
    """Folders of compiled files by key, for treatments that differ in them."""
    environment_passed: tuple[EnvironmentName, ...] = ()
    """Names of ambient variables that servers get as they are."""
    devices: Devices | None = Field(default=None, exclude_if=is_absent)
    """How cards are looked at; null: as the defaults say."""
    remote: Line | None = None
    """The git remote that witnesses commits and the ledger; needed for class record."""
