"""What a leg writes down about the start it ran, beside the wire and the log."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.prereg.cards import CardIdentity
from labctl.prereg.field_types import EnvironmentName


class ProcessSeen(FrozenModel):
    """One process of the start, as /proc shows it."""

    pid: int
    """Its id."""
    parent_pid: int
    """Its parent."""
    start_ticks: int
    """Its start time in clock ticks since boot."""
    executable: str
    """What /proc/PID/exe points to."""
    argv: tuple[str, ...]
    """Its argument list."""
    environment: dict[EnvironmentName, str]
    """Variables on the allow-list, with values."""
    environment_other: tuple[str, ...]
    """Names of other variables that it has, without values."""


class Listener(FrozenModel):
    """One LISTEN socket on the port of the start."""

    address: str
    """The local address, as /proc/net/tcp* gives it."""
    inode: int
    """The socket's inode."""
    owner_pids: tuple[int, ...]
    """Processes of the start that hold the inode; empty: it is not ours."""


class Readiness(FrozenModel):
    """How the start became ready."""

    process_started_mono_ns: int
    """When the process was started."""
    ready_mono_ns: int
    """When health answered 200."""
    attempts: int
    """Health requests made."""
    version_body: str
    """The version endpoint's body, as text."""
    models_body: str
    """The models endpoint's body, as text."""
    served_model: str
    """The only model that the models endpoint lists."""


class ProcessRecord(FrozenModel):
    """`process.json`: what ran, seen from outside when it was ready."""

    schema_id: Literal["labctl/process/1"] = Field(default="labctl/process/1", alias="schema")
    """The format of this document."""
    root: ProcessSeen
    """The server process that the leg started."""
    tree: tuple[ProcessSeen, ...]
    """Every other process of the start, when ready, by pid."""
    listeners: tuple[Listener, ...]
    """LISTEN sockets on the port, when ready."""
    listeners_after: tuple[Listener, ...]
    """The same, after the last prompt."""
    roots_after: tuple[int, ...]
    """Start ticks of the root process after the last prompt: one, equal to the first, where it did not restart."""
    readiness: Readiness
    """How it became ready."""


class Telemetry(FrozenModel):
    """One line of `telemetry.jsonl`, taken between rows, never during one."""

    row: int
    """The row that had just ended; 0: before the first."""
    mono_ns: int
    """When."""
    load_1m_milli: int
    """The 1-minute load average x 1000."""
    cpu_ticks_total: int
    """Ticks of all CPUs since boot."""
    cpu_ticks_idle: int
    """Idle ticks of all CPUs since boot."""
    memory_available_bytes: int
    """MemAvailable."""
    server_rss_bytes: int
    """Resident memory of the start's processes."""
    cpu_frequency_mhz: tuple[int, ...]
    """Current frequency of each CPU, where the system tells."""


class StopCause(StrEnum):
    """Why a leg ended."""

    COMPLETED = "completed"
    NOT_READY = "not_ready"
    STREAM = "stream"
    INTERRUPTED = "interrupted"
    LOG_LIMIT = "log_limit"
    LEFTOVER = "leftover"
    REFUSED = "refused"
    HOST = "host"
    WORKER = "worker"


def _is_empty(value: object) -> bool:
    """What came later is left out where unused, so that earlier records keep their one canonical form."""
    return not value


class DeviceMemory(FrozenModel):
    """Memory of one card that was in use."""

    identity: CardIdentity
    """The card."""
    before_bytes: int
    """Before the server was started."""
    after_bytes: int
    """After it had ended."""


class Postflight(FrozenModel):
    """`postflight.json`: what was left after the stop."""

    schema_id: Literal["labctl/postflight/1"] = Field(default="labctl/postflight/1", alias="schema")
    """The format of this document."""
    stop_signal_mono_ns: int
    """When SIGTERM was sent."""
    ended_mono_ns: int
    """When the last process of the start was gone."""
    exit_status: int | None
    """The root process's exit status; negative: the signal that ended it."""
    killed: tuple[int, ...]
    """Processes that did not end in time and were killed."""
    processes_left: tuple[int, ...]
    """Processes of the start that still exist."""
    listeners_left: tuple[Listener, ...]
    """LISTEN sockets left on the port."""
    shared_memory_left: tuple[str, ...]
    """Shared-memory segments that were not there before the start and are ours."""
    device_memory: tuple[DeviceMemory, ...] = Field(default=(), exclude_if=_is_empty)
    """Memory of the watched cards, where their tool tells it."""
    log_bytes: int
    """What the server printed."""
    log_sha256: Sha256
    """Its digest."""


class LegExit(FrozenModel):
    """`exit.json`: how the leg ended."""

    schema_id: Literal["labctl/leg-exit/1"] = Field(default="labctl/leg-exit/1", alias="schema")
    """The format of this document."""
    leg: SafeName
    """The leg."""
    cause: StopCause
    """Why it ended."""
    problems: tuple[str, ...]
    """One line each; empty for a completed leg."""
    rows_completed: int
    """Rows whose response came to its end."""
    wall_ns: int
    """UTC, for labels."""
    mono_ns: int
    """The monotonic clock."""
