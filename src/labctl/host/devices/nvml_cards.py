"""Asks NVML about every NVIDIA card, and prints JSON; run alone, since a driver that hangs would hang its asker.

It needs the standard library and `pynvml` (the extra `nvidia`). NVML makes no context and takes no memory on any card.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Protocol, cast


class PciFacts(Protocol):
    """What NVML says of a card's place."""

    @property
    def busId(self) -> str | bytes: ...


class MemoryFacts(Protocol):
    """What NVML says of a card's memory."""

    @property
    def total(self) -> int: ...
    @property
    def used(self) -> int: ...


class ProcessFacts(Protocol):
    """What NVML says of a process on a card."""

    @property
    def pid(self) -> int: ...
    @property
    def usedGpuMemory(self) -> int | None: ...


class Nvml(Protocol):
    """The part of `pynvml` that is used here; the names are NVML's."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> object: ...
    def nvmlShutdown(self) -> object: ...
    def nvmlSystemGetDriverVersion(self) -> str | bytes: ...
    def nvmlSystemGetNVMLVersion(self) -> str | bytes: ...
    def nvmlSystemGetProcessName(self, pid: int) -> str | bytes: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetUUID(self, handle: object) -> str | bytes: ...
    def nvmlDeviceGetName(self, handle: object) -> str | bytes: ...
    def nvmlDeviceGetMinorNumber(self, handle: object) -> int: ...
    def nvmlDeviceGetPciInfo(self, handle: object) -> PciFacts: ...
    def nvmlDeviceGetMemoryInfo(self, handle: object) -> MemoryFacts: ...
    def nvmlDeviceGetMigMode(self, handle: object) -> Sequence[int]: ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence[ProcessFacts]: ...
    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: object) -> Sequence[ProcessFacts]: ...


def main() -> int:
    """Print the answer, or `{"error": …}` with exit status 1."""
    try:
        library = cast("Nvml", import_module("pynvml"))
    except ImportError:
        return _fail("pynvml is not installed; install labctl's extra `nvidia`")
    try:
        answer = every_card(library)
    except library.NVMLError as error:
        return _fail(f"NVML: {error}")
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
    return 0


def every_card(library: Nvml) -> dict[str, object]:
    """What NVML knows of driver and cards."""
    library.nvmlInit()
    try:
        return {
            "driver": _text(library.nvmlSystemGetDriverVersion()),
            "nvml": _text(library.nvmlSystemGetNVMLVersion()),
            "cards": [card(library, index) for index in range(library.nvmlDeviceGetCount())],
        }
    finally:
        library.nvmlShutdown()


def card(library: Nvml, index: int) -> dict[str, object]:
    """One card."""
    handle = library.nvmlDeviceGetHandleByIndex(index)
    memory = library.nvmlDeviceGetMemoryInfo(handle)
    return {
        "index": index,
        "uuid": _text(library.nvmlDeviceGetUUID(handle)),
        "bus_id": _text(library.nvmlDeviceGetPciInfo(handle).busId),
        "minor": library.nvmlDeviceGetMinorNumber(handle),
        "name": _text(library.nvmlDeviceGetName(handle)),
        "memory_total_bytes": int(memory.total),
        "memory_used_bytes": int(memory.used),
        "is_divided": _is_divided(library, handle),
        "processes": list(_processes(library, handle)),
    }


def _is_divided(library: Nvml, handle: object) -> bool:
    try:
        return any(library.nvmlDeviceGetMigMode(handle))
    except library.NVMLError:
        return False  # cards that cannot be divided do not know the question


def _processes(library: Nvml, handle: object) -> Iterator[dict[str, object]]:
    found = {
        facts.pid: facts.usedGpuMemory
        for ask in (library.nvmlDeviceGetGraphicsRunningProcesses, library.nvmlDeviceGetComputeRunningProcesses)
        for facts in ask(handle)
    }
    for pid in sorted(found):
        yield {"pid": pid, "name": _name(library, pid), "memory_bytes": found[pid]}


def _name(library: Nvml, pid: int) -> str:
    try:
        return _text(library.nvmlSystemGetProcessName(pid))
    except library.NVMLError:
        return ""  # it has ended, or belongs to another container


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _fail(fault: str) -> int:
    sys.stdout.write(json.dumps({"error": fault}) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
