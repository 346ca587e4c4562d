"""What a leg writes down about the worker or the ranks that it ran, seen from outside: nothing here is their word."""

from typing import Literal

from pydantic import Field

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.records.devices import CardState, Discovery
from labctl.records.leg import ProcessSeen


def _is_empty(value: object) -> bool:
    """What came later is left out where unused, so that earlier records keep their one canonical form."""
    return not value


class WorkerProcess(FrozenModel):
    """`process.json` of a component leg."""

    schema_id: Literal["labctl/worker-process/1"] = Field(default="labctl/worker-process/1", alias="schema")
    """The format of this document."""
    started_mono_ns: int
    """When the worker was started."""
    root: ProcessSeen | None
    """The worker soon after its start; null: it ended before it could be looked at."""
    observed_mono_ns: int | None
    """When the worker paused with all its tensors alive and was looked at; null: it never did."""
    tree: tuple[ProcessSeen, ...]
    """Every other process of the leg at the pause, by pid."""
    cpus: tuple[int, ...]
    """CPUs on which the worker could run, at the pause."""
    pauses: int
    """How often the worker paused."""
    rows_seen: int
    """Lines of `rows.jsonl` when the worker paused, or else when it had ended."""


class WorkerPostflight(FrozenModel):
    """`postflight.json` of a component leg: how the worker ended, and what was left."""

    schema_id: Literal["labctl/worker-postflight/1"] = Field(default="labctl/worker-postflight/1", alias="schema")
    """The format of this document."""
    ended_mono_ns: int
    """When the last process of the leg was gone."""
    exit_status: int | None
    """The worker's exit status; negative: the signal that ended it."""
    timed_out: bool
    """Whether its time was over."""
    stopped_by_us: bool
    """Whether the worker still ran when the leg ended it."""
    killed: tuple[int, ...]
    """Processes that did not end when asked to and were killed."""
    processes_left: tuple[int, ...]
    """Processes of the leg that still exist."""
    shared_memory_left: tuple[str, ...]
    """Shared-memory segments that were not there before and are ours."""
    log_bytes: int
    """What the worker printed."""
    log_sha256: Sha256
    """Its digest."""
    card: CardState | None
    """The card before the worker and after it; null: it could not be looked at again."""
    outlived: tuple[int, ...] = Field(default=(), exclude_if=_is_empty)
    """Processes that ran on after the worker that had started them, or beside one out of time; all were ended."""


class RankExit(FrozenModel):
    """`rank-R.exit.json` of a probe leg: how one rank ended, seen from outside."""

    schema_id: Literal["labctl/rank-exit/1"] = Field(default="labctl/rank-exit/1", alias="schema")
    """The format of this document."""
    rank: int
    """Which rank."""
    leg: SafeName
    """The leg."""
    pid: int
    """Its process."""
    start_ticks: int
    """Its start time in clock ticks since boot."""
    seen: ProcessSeen | None
    """The process soon after its start; null: it ended before it could be looked at."""
    started_mono_ns: int
    """When it was started."""
    ended_mono_ns: int
    """When it was gone."""
    exit_status: int | None
    """Its exit status; negative: the signal that ended it; null: it is still there."""
    timed_out: bool
    """Whether it still ran when the time of the probe was over."""
    killed: bool
    """Whether it did not end when asked to and was killed."""
    visible: Discovery
    """The cards that it could see: the leg looked with the rank's own environment and CPUs, before it was started."""
    log_bytes: int
    """What it printed."""
    log_sha256: Sha256
    """Its digest."""


class ProbePostflight(FrozenModel):
    """`postflight.json` of a probe leg."""

    schema_id: Literal["labctl/probe-postflight/1"] = Field(default="labctl/probe-postflight/1", alias="schema")
    """The format of this document."""
    ended_mono_ns: int
    """When the last process was gone."""
    timed_out: bool
    """Whether the time of the probe was over before every rank had ended."""
    processes_left: tuple[int, ...]
    """Processes of the leg that still exist."""
    shared_memory_left: tuple[str, ...]
    """Shared-memory segments that were not there before and are ours."""
    cards: tuple[CardState, ...]
    """The card of each rank before and after; empty: they could not be looked at again."""
    outlived: tuple[int, ...] = Field(default=(), exclude_if=_is_empty)
    """Processes that ran on after the ranks that had started them, or beside ranks out of time; all were ended."""
