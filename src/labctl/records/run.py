"""What the controller writes down about the run as a whole."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import Field

from labctl.digest import sha256_hex
from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.protocol import Event
from labctl.rundir import RunPaths

NOTHING_SHA256 = sha256_hex(b"")


class JournalEntry(FrozenModel):
    """One line of `journal.jsonl`."""

    schema_id: Literal["labctl/journal/1"] = Field(default="labctl/journal/1", alias="schema")
    """The format of this line."""
    seq: int
    """0, 1, 2, …"""
    prev: Sha256
    """SHA-256 of the line before, its newline included; of nothing for the first."""
    event: Event
    """What happened."""
    leg: str | None
    """The leg it happened to, or null."""
    detail: str
    """One line for people."""
    wall_ns: int
    """UTC, for labels."""
    mono_ns: int
    """The monotonic clock."""


class OutcomeKind(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    PHASE_STOPPED = "phase_stopped"
    ABORTED = "aborted"


class AbortCause(StrEnum):
    """Why a run was aborted."""

    LEG_FAILED = "leg_failed"
    HOST_FAULT = "host_fault"
    OPERATOR = "operator"
    CONTROLLER_KILLED = "controller_killed"
    EVIDENCE = "evidence"
    SECRET_FOUND = "secret_found"


class Outcome(FrozenModel):
    """`outcome.json`: completed, stopped by rule, or aborted and why."""

    schema_id: Literal["labctl/outcome/1"] = Field(default="labctl/outcome/1", alias="schema")
    """The format of this document."""
    outcome: OutcomeKind
    """How the run ended."""
    cause: AbortCause | None
    """Why, for an aborted run."""
    detail: tuple[str, ...]
    """One line each."""
    legs_closed: tuple[str, ...]
    """Legs that were closed, in order."""


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """A run directory to which nothing will be added: what `run_campaign` gives and `seal_run` takes."""

    paths: RunPaths
    """Its files; `outcome.json` is there."""
    outcome: Outcome
    """How it ended."""


class HostIdentity(FrozenModel):
    """`host/identity.json`: what the machine is."""

    schema_id: Literal["labctl/host-identity/1"] = Field(default="labctl/host-identity/1", alias="schema")
    """The format of this document."""
    machine_id_sha256: Sha256
    """Digest of the machine id."""
    boot_id: str
    """The boot."""
    hostname: str
    """Its name."""
    kernel: str
    """Kernel release and version."""
    architecture: str
    """Such as x86_64."""
    cpu_model: str
    """As /proc/cpuinfo says."""
    cpu_count: int
    """CPUs online."""
    cpuinfo_sha256: Sha256
    """Digest of the lines of /proc/cpuinfo that do not change while running."""
    memory_bytes: int
    """MemTotal."""
    clocksource: str
    """The kernel's clock source."""
    governors: tuple[str, ...]
    """Distinct CPU frequency governors; empty where the system has none."""
    python: str
    """labctl's interpreter: version and implementation."""
    distributions: tuple[str, ...]
    """`name==version` of every distribution in labctl's environment, sorted."""


class Layout(FrozenModel):
    """`layout.json`: path and size of every other payload file."""

    schema_id: Literal["labctl/layout/1"] = Field(default="labctl/layout/1", alias="schema")
    """The format of this document."""
    files: dict[str, int]
    """Size in bytes by path below data/."""


class PhaseAnswer(FrozenModel):
    """`phase1/<analyzer>.json`: what an analyzer says after the first pair."""

    schema_id: Literal["labctl/phase/1"] = Field(default="labctl/phase/1", alias="schema")
    """The format of this document."""
    analyzer: SafeName
    """Which analyzer."""
    analyzer_sha256: Sha256
    """Its code."""
    legs: dict[str, Sha256]
    """The leg manifests that it judged, by leg folder name."""
    may_continue: bool = Field(alias="continue")
    """Whether the other legs may run; the only field that the controller reads."""
    reasons: tuple[str, ...]
    """Gates that did not pass, one line each."""
