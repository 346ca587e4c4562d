"""The one-shot marker, the ledger's lines, and what preflight found."""

from typing import Annotated, Literal

from pydantic import Field

from labctl.frozen import FrozenModel, GitCommit, SafeName, Sha256
from labctl.prereg.field_types import is_absent
from labctl.records.lane import Lane

Nonce = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Nanoseconds = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class MarkerHost(FrozenModel):
    """Who consumed the packet."""

    machine_id_sha256: Sha256
    """Digest of the machine id."""
    boot_id: str
    """The boot."""
    controller_pid: int
    """The controller's process id."""
    controller_start_ticks: int
    """Its start time in clock ticks since boot, so that the id cannot be mistaken for a later process."""


class Marker(FrozenModel):
    """The one-shot marker: while it exists, its packet is spent."""

    schema_id: Literal["labctl/marker/1"] = Field(default="labctl/marker/1", alias="schema")
    """The format of this document."""
    kind: Literal["real", "rehearsal"]
    """The packet's kind."""
    packet_sha256: Sha256
    """The packet."""
    prereg_sha256: Sha256
    """The YAML file's bytes."""
    git_commit: GitCommit
    """The frozen commit."""
    tree_dirhash: Sha256
    """Its content."""
    order: tuple[SafeName, ...]
    """The legs, in order."""
    run_dir: SafeName
    """The run's folder name."""
    nonce: Nonce
    """128 random bits, from which each start's nonce is derived."""
    host: MarkerHost
    """Who consumed the packet."""
    approvals: tuple[Sha256, ...]
    """Digests of the approvals that were counted."""
    file_systems: dict[SafeName, str]
    """File-system type of each root."""
    rehearsal_seal_sha256: Sha256 | None
    """The seal of the rehearsal that preflight demanded, or null."""
    lane: Lane | None = Field(default=None, exclude_if=is_absent)
    """Which attempt at what this is; null for rehearsals and for what decides nothing between two arms."""
    wall_ns: Nanoseconds
    """UTC, for labels."""
    mono_ns: Nanoseconds
    """The monotonic clock of this boot."""


class LedgerLine(FrozenModel):
    """One line of the ledger: a consumption or a seal."""

    schema_id: Literal["labctl/ledger/1"] = Field(default="labctl/ledger/1", alias="schema")
    """The format of this line."""
    seq: Count
    """0, 1, 2, …"""
    prev: Sha256
    """SHA-256 of the line before, its newline included; of nothing for the first."""
    event: Literal["consumed", "sealed"]
    """What happened."""
    packet_sha256: Sha256
    """The packet."""
    campaign: SafeName
    """The campaign's id."""
    run_dir: SafeName
    """The run's folder name."""
    digest: Sha256
    """SHA-256 of the marker, or of the seal statement."""
    wall_ns: Nanoseconds
    """UTC, for labels."""
    lane_sha256: Sha256 | None = Field(default=None, exclude_if=is_absent)
    """The lane of a consumption; null where it has none, and in lines from before lanes were kept."""


class Finding(FrozenModel):
    """One thing that preflight looked at."""

    check: SafeName
    """Which check."""
    expected: str
    """What must hold."""
    observed: str
    """What was found."""
    is_met: bool
    """Whether it holds."""


class PreflightPassed(FrozenModel):
    """What preflight found, when everything held."""

    schema_id: Literal["labctl/preflight/1"] = Field(default="labctl/preflight/1", alias="schema")
    """The format of this document."""
    packet_sha256: Sha256
    """The packet."""
    findings: tuple[Finding, ...]
    """Every check, each met."""
    file_systems: dict[SafeName, str]
    """File-system type of each root."""
    rehearsal_seal_sha256: Sha256 | None
    """The seal of the rehearsal that was demanded, or null."""
