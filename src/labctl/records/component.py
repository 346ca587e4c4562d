"""What a component worker writes beside its rows: `pre-import.json`, and `component.json` however it ended."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from labctl.frozen import FrozenModel, SafeName, Sha256
from labctl.records.component_row import DrawnTensor, TensorName, TensorRecord
from labctl.records.microcase import MicrocaseRecord


class PreImport(FrozenModel):
    """`pre-import.json`: on disk before torch is imported and before a line of the worker file runs."""

    schema_id: Literal["labctl/pre-import/1"] = Field(default="labctl/pre-import/1", alias="schema")
    """The format of this document."""
    leg: SafeName
    """The leg."""
    nonce: str
    """The leg's challenge nonce, as ordered."""
    packet_sha256: Sha256
    """The packet, as ordered."""
    marker_sha256: Sha256
    """The marker, as ordered."""
    order_sha256: Sha256
    """The digest of the order's bytes."""
    discovery_sha256: Sha256 | None
    """The digest of the leg's `discovery.json`, hashed here; null: there is none."""
    code_sha256: dict[str, Sha256]
    """Each exported file, hashed here, by its role in the packet."""
    argv: tuple[str, ...]
    """The whole argument list of the interpreter."""
    executable: str
    """The interpreter, links resolved."""
    executable_sha256: Sha256
    """Its digest, hashed here."""
    python: str
    """Its version line."""
    flags: dict[str, int]
    """Its flags, such as `isolated`."""
    environment: dict[str, str]
    """The whole environment."""
    working_folder: str
    """The current folder."""
    modules: tuple[str, ...]
    """Top-level modules that are loaded by now, in order of name."""
    mapped_files: tuple[str, ...]
    """Files that are mapped into the process by now, in order of name."""
    cpus: tuple[NonNegativeInt, ...]
    """CPUs on which the process may run."""
    pid: PositiveInt
    """The process."""
    start_ticks: NonNegativeInt
    """Its start time in clock ticks since boot."""
    boot_id: str
    """The boot."""
    wall_ns: NonNegativeInt
    """UTC, for labels."""
    mono_ns: NonNegativeInt
    """The monotonic clock."""


class CacheLayout(FrozenModel):
    """How a cache's slots lie in it."""

    slots_input: TensorName
    """The input that holds the slot mapping."""
    slot_dim: NonNegativeInt
    """The dimension that slots count along."""


class OwnedBuffers(FrozenModel):
    """The candidate's own tensors for one case of one arm, when everything had run."""

    arm: SafeName
    """The arm."""
    case: SafeName
    """The case."""
    buffers: tuple[TensorRecord, ...]
    """By name."""


class Versions(FrozenModel):
    """What ran."""

    python: str
    """The interpreter's version."""
    torch: str
    """torch's version."""
    torch_git: str
    """torch's commit, as it says."""
    accelerator: str | None
    """The version of CUDA or of the XPU runtime that torch was built for."""


class DeviceSeen(FrozenModel):
    """The card as torch shows it."""

    device: str
    """The device on which everything ran, as torch names it."""
    visible: NonNegativeInt
    """How many devices of its type torch sees."""
    name: str
    """Its name."""
    uuid: str | None
    """Its UUID, as torch writes it; null: torch tells none."""
    memory_bytes: NonNegativeInt | None
    """Its memory; null: torch tells none."""
    cpus: tuple[NonNegativeInt, ...]
    """CPUs on which the process may run."""
    threads: PositiveInt
    """Threads that torch computes with on CPUs."""


class WarningSeen(FrozenModel):
    """One warning; it stands in the log as well."""

    category: str
    """Its type."""
    message: str
    """Its text."""


class OpenFile(FrozenModel):
    """What a standard stream of the process leads to."""

    target: str
    """What /proc/self/fd/N points to."""
    device: NonNegativeInt
    """The file's device."""
    inode: NonNegativeInt
    """The file's inode."""


class Channels(FrozenModel):
    """Where warnings and output go; a worker that silences them changes this."""

    warning_filters: tuple[str, ...]
    """`warnings.filters`, one line each."""
    shows_warnings: str
    """The function that shows warnings: module and name."""
    stdout: OpenFile
    """File descriptor 1."""
    stderr: OpenFile
    """File descriptor 2."""


class WorkerTiming(FrozenModel):
    """What recording costs; no figure of the component."""

    import_ns: NonNegativeInt
    """Importing torch and the worker."""
    compute_ns: NonNegativeInt
    """The worker's own code: weights, inputs, control and candidate."""
    recording_ns: NonNegativeInt
    """Hashing, comparing, writing."""


class WorkerCompleted(FrozenModel):
    """Every row and microcase ran; whether they are equal is for those who judge."""

    kind: Literal["completed"]
    """The ending's kind."""


class WorkerFailed(FrozenModel):
    """The worker could not go on."""

    kind: Literal["failed"]
    """The ending's kind."""
    stage: Literal["import", "checkpoint", "row", "microcase", "closing"]
    """In what."""
    row: NonNegativeInt
    """Rows completed before."""
    exception: str
    """The type."""
    message: str
    """Its message, at most 2,000 characters."""
    traceback: tuple[str, ...]
    """Where."""


class ComponentRecord(FrozenModel):
    """`component.json`: written however the worker ended, unless it was killed."""

    schema_id: Literal["labctl/component/1"] = Field(default="labctl/component/1", alias="schema")
    """The format of this document."""
    leg: SafeName
    """The leg."""
    order_sha256: Sha256
    """The digest of the order's bytes."""
    pre_import_sha256: Sha256
    """The digest of `pre-import.json`."""
    rows_sha256: Sha256
    """The digest of `rows.jsonl`."""
    rows: NonNegativeInt
    """Lines of it."""
    pid: PositiveInt
    """The process."""
    versions: Versions | None
    """What ran; null: torch could not be imported."""
    device: DeviceSeen | None
    """The card as torch shows it; null: not reached."""
    weights_before: tuple[DrawnTensor, ...]
    """Every weight, before the first row, by name."""
    weights_after: tuple[TensorRecord, ...]
    """Every weight, after everything, by name."""
    caches: tuple[DrawnTensor, ...]
    """What each cache of the candidate holds at first, by number."""
    cache_layout: CacheLayout | None
    """How slots lie in a cache; null: there are none."""
    owned: tuple[OwnedBuffers, ...]
    """The candidate's own tensors at the end."""
    microcases: tuple[MicrocaseRecord, ...]
    """In the order of the declaration."""
    warnings: tuple[WarningSeen, ...]
    """Warnings, in order."""
    channels_before: Channels | None
    """With torch imported, before a line of the worker file ran."""
    channels_after: Channels | None
    """At the end."""
    timing: WorkerTiming
    """What recording cost."""
    started_mono_ns: NonNegativeInt
    """When the pre-import seal was on disk."""
    ended_mono_ns: NonNegativeInt
    """When this record was made."""
    ending: Annotated[WorkerCompleted | WorkerFailed, Field(discriminator="kind")]
    """How it ended."""
