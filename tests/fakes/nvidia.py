"""A machine with NVIDIA cards, seen through NVML and through the CUDA driver, as both are known to behave.

`FakeNvml` answers like the module `pynvml`: it knows every card whatever `CUDA_VISIBLE_DEVICES` says, writes PCI
domains with eight digits, gives text as bytes where old versions do, and raises its own `NVMLError` before `nvmlInit`.
`FakeCuda` answers like `libcuda.so.1`: it honours `CUDA_VISIBLE_DEVICES` (numbers, UUIDs and their unique beginnings;
the first word that names no card hides everything from there on), and numbers what is left from 0.
`nvidia_reader(folder, machine)` gives a reader whose two questions run labctl's own scripts over these, in processes of
their own.
"""

import ctypes
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from labctl.host.devices import cuda_visible, nvml_cards

if TYPE_CHECKING:
    from labctl.host.devices.nvidia import NvidiaReader

NOT_INITIALIZED = 3
NO_DEVICE = 100


@dataclass(frozen=True)
class FakeCard:
    """One card."""

    uuid: str
    bus: str
    minor: int
    used: int = 600 << 20
    is_divided: bool = False
    processes: tuple[tuple[int, int | None], ...] = ()
    """Process id and bytes."""


@dataclass(frozen=True)
class FakeMachine:
    """What both libraries tell about."""

    cards: tuple[FakeCard, ...]
    fault: str = ""
    """What NVML says instead of initialising."""
    hangs: bool = False
    """NVML never answers."""
    gives_bytes: bool = False
    """Text is bytes, as in old versions of `pynvml`."""


def two_cards() -> FakeMachine:
    """Two cards, whose minor numbers are not in the order of their addresses."""
    return FakeMachine(
        (
            FakeCard("GPU-11111111-aaaa-bbbb-cccc-000000000001", "9B", 1),
            FakeCard("GPU-22222222-aaaa-bbbb-cccc-000000000002", "19", 0),
        )
    )


class FakeNvmlError(Exception):
    """NVML's own error."""


@dataclass(frozen=True)
class Pci:
    """NVML's facts of a place."""

    busId: str | bytes  # noqa: N815 (NVML's name)


@dataclass(frozen=True)
class Memory:
    """NVML's facts of memory."""

    total: int
    used: int


@dataclass(frozen=True)
class OnCard:
    """NVML's facts of a process."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815 (NVML's name)


class FakeNvml:
    """The module `pynvml`; handles are cards."""

    NVMLError: type[Exception] = FakeNvmlError

    def __init__(self, machine: FakeMachine) -> None:
        self._machine = machine
        self.is_open = False

    def nvmlInit(self) -> None:  # noqa: N802
        while self._machine.hangs:
            time.sleep(3600)
        if self._machine.fault:
            raise FakeNvmlError(self._machine.fault)
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open = False

    def nvmlSystemGetDriverVersion(self) -> str | bytes:  # noqa: N802
        return self._text("580.95.05")

    def nvmlSystemGetNVMLVersion(self) -> str | bytes:  # noqa: N802
        return self._text("13.580.95.05")

    def nvmlSystemGetProcessName(self, pid: int) -> str | bytes:  # noqa: N802
        if pid < 0:
            raise FakeNvmlError("Not Found")
        return self._text("python3")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._require_open()
        return len(self._machine.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:  # noqa: N802
        self._require_open()
        return self._machine.cards[index]

    def nvmlDeviceGetUUID(self, handle: object) -> str | bytes:  # noqa: N802
        return self._text(cast("FakeCard", handle).uuid)

    def nvmlDeviceGetName(self, handle: object) -> str | bytes:  # noqa: N802, ARG002
        return self._text("NVIDIA H200")

    def nvmlDeviceGetMinorNumber(self, handle: object) -> int:  # noqa: N802
        return cast("FakeCard", handle).minor

    def nvmlDeviceGetPciInfo(self, handle: object) -> Pci:  # noqa: N802
        return Pci(self._text(f"00000000:{cast('FakeCard', handle).bus}:00.0"))

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Memory:  # noqa: N802
        return Memory(150_754_820_096, cast("FakeCard", handle).used)

    def nvmlDeviceGetMigMode(self, handle: object) -> list[int]:  # noqa: N802
        if cast("FakeCard", handle).minor > 1:
            raise FakeNvmlError("Not Supported")
        return [int(cast("FakeCard", handle).is_divided)] * 2

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[OnCard]:  # noqa: N802
        return [OnCard(*facts) for facts in cast("FakeCard", handle).processes]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: object) -> list[OnCard]:  # noqa: N802, ARG002
        return []

    def _require_open(self) -> None:
        if not self.is_open:
            raise FakeNvmlError("Uninitialized")

    def _text(self, text: str) -> str | bytes:
        return text.encode() if self._machine.gives_bytes else text


class FakeCuda:
    """The library `libcuda.so.1`: every function gives a status and writes through its pointers."""

    def __init__(self, machine: FakeMachine, visible: str | None) -> None:
        self._cards = _kept(machine.cards, visible)
        self._is_open = False

    def cuInit(self, flags: int) -> int:  # noqa: N802
        self._is_open = flags == 0 and bool(self._cards)
        return 0 if self._is_open else NO_DEVICE

    def cuDeviceGetCount(self, count: object) -> int:  # noqa: N802
        _at(count).value = len(self._cards)
        return 0 if self._is_open else NOT_INITIALIZED

    def cuDeviceGet(self, device: object, index: int) -> int:  # noqa: N802
        _at(device).value = index
        return 0 if index < len(self._cards) else 101

    def cuDeviceGetUuid(self, raw: object, device: ctypes.c_int) -> int:  # noqa: N802
        text = self._cards[device.value].uuid.removeprefix("GPU-").replace("-", "")
        cast("ctypes.Array[ctypes.c_ubyte]", raw._obj)[:] = list(bytes.fromhex(text))  # type: ignore[attr-defined] # byref
        return 0

    def cuDeviceGetPCIBusId(self, text: "ctypes.Array[ctypes.c_char]", size: int, device: ctypes.c_int) -> int:  # noqa: N802
        text.value = f"0000:{self._cards[device.value].bus}:00.0".encode()[: size - 1]
        return 0

    def cuDeviceGetName(self, text: "ctypes.Array[ctypes.c_char]", size: int, device: ctypes.c_int) -> int:  # noqa: N802, ARG002
        text.value = b"NVIDIA H200"[: size - 1]
        return 0

    def cuDeviceTotalMem_v2(self, memory: object, device: ctypes.c_int) -> int:  # noqa: N802, ARG002
        _at(memory).value = 150_119_841_792
        return 0


def nvidia_reader(folder: Path, machine: FakeMachine, timeout_s: float = 20) -> "NvidiaReader":
    """A reader that asks this machine, by two processes."""
    from labctl.host.devices.nvidia import NvidiaReader  # the two processes need none of it, and start faster

    folder.mkdir(parents=True, exist_ok=True)
    facts = folder / "machine.json"
    facts.write_text(json.dumps(asdict(machine)))
    start = (sys.executable, "-B", __file__, str(facts))
    return NvidiaReader(timeout_s, nvml=(*start, "nvml"), cuda=(*start, "cuda"), system=folder)


def _kept(cards: tuple[FakeCard, ...], visible: str | None) -> tuple[FakeCard, ...]:
    if visible is None:
        return cards
    kept: list[FakeCard] = []
    for word in visible.split(","):
        named = [
            card for number, card in enumerate(cards) if word == str(number) or (word and card.uuid.startswith(word))
        ]
        if len(named) != 1:
            break
        kept += named
    return tuple(kept)


def _at(pointer: object) -> ctypes.c_int:
    return cast("ctypes.c_int", pointer._obj)  # type: ignore[attr-defined] # what byref points to


def _loaded(path: Path) -> FakeMachine:
    facts = json.loads(path.read_text())
    cards = [card | {"processes": tuple(tuple(one) for one in card["processes"])} for card in facts.pop("cards")]
    return FakeMachine(cards=tuple(FakeCard(**card) for card in cards), **facts)


def main(facts: str, question: str) -> int:
    """Answer one question as labctl's own script would, over the fake libraries."""
    machine = _loaded(Path(facts))
    try:
        if question == "nvml":
            answer = nvml_cards.every_card(FakeNvml(machine))
        else:
            driver = cast("ctypes.CDLL", FakeCuda(machine, os.environ.get("CUDA_VISIBLE_DEVICES")))
            answer = {"cards": cuda_visible.visible_cards(driver)}
    except (FakeNvmlError, RuntimeError) as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return 1
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
