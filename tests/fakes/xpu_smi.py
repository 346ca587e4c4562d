#!/usr/bin/env python3
"""A stand-in for Intel's `xpu-smi`, as a program of its own, that behaves as the real one is known to behave.

`install(folder, machine)` writes an executable `xpu-smi` and the machine that it tells about. The program

- answers `-v`, `discovery -j`, `discovery -d ID -j` and `ps -j` in the form of version 1 or version 2 of the tool;
- honours `ZE_AFFINITY_MASK` as Level Zero does: only the cards of the mask are there, numbered from 0 again, while
  UUID, PCI address and DRM node stay those of the card;
- with `ONEAPI_DEVICE_SELECTOR=level_zero:N` picks from what the mask has left, so that `level_zero:1` beside a mask of
  one card finds none;
- writes UUIDs in the byte order opposite to torch's, and detail numbers as text, unknown ones as `N/A`;
- shows itself, by its real process id, as a client of every card that it looks at;
- hangs for ever in a question that the machine names in `hangs_in`, ignoring SIGTERM;
- answers `{"error", "errno"}` with a status of its own for a card that is not there.
"""

import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

MACHINE = "machine.json"
DEVICE_NOT_FOUND = 18


@dataclass(frozen=True)
class FakeCard:
    """One card of the machine."""

    uuid: str
    bdf: str
    node: str
    name: str = "Intel(R) Arc(TM) Pro B70 Graphics"
    free_bytes: str = "34206572544"


@dataclass(frozen=True)
class FakeMachine:
    """What the program tells about."""

    cards: tuple[FakeCard, ...]
    clients: tuple[tuple[int, int, str, int], ...] = ()
    """Card number in the unfiltered order, process id, name, thousands of bytes."""
    hangs_in: str = ""
    """A word of the command line in which the program never answers."""
    version: int = 1
    """Major version of the tool, whose answers have other keys."""
    raw: dict[str, str] = field(default_factory=dict)
    """Words for a question, verbatim, instead of an answer."""


def four_cards() -> FakeMachine:
    """Four cards of one kind, whose DRM nodes and PCI addresses are in different orders."""
    places = (("23", 3), ("27", 4), ("43", 0), ("47", 2))
    return FakeMachine(
        tuple(
            FakeCard(f"00000000-0000-00{bus}-0000-0000e2238086", f"0000:{bus}:00.0", f"/dev/dri/card{node}")
            for bus, node in places
        )
    )


def install(folder: Path, machine: FakeMachine) -> Path:
    """Write the program and its machine into a folder; the program's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MACHINE).write_text(json.dumps(asdict(machine)))
    program = folder / "xpu-smi"
    body = Path(__file__).read_text("utf-8").partition("\n")[2]
    program.write_text(f"#!{sys.executable} -IBS\n{body}", "utf-8")
    program.chmod(0o755)
    return program


def loaded(path: Path) -> FakeMachine:
    """The machine that `install` wrote."""
    facts = json.loads(path.read_text())
    cards = tuple(FakeCard(**card) for card in facts.pop("cards"))
    clients = tuple((card, pid, name, size) for card, pid, name, size in facts.pop("clients"))
    return FakeMachine(cards=cards, clients=clients, **facts)


def visible(cards: int, environment: dict[str, str]) -> list[int]:
    """Numbers, in the unfiltered order, of the cards that the environment leaves."""
    mask = environment.get("ZE_AFFINITY_MASK")
    kept = list(range(cards)) if mask is None else [int(part) for part in mask.split(",") if int(part) < cards]
    backend, _, wanted = environment.get("ONEAPI_DEVICE_SELECTOR", "level_zero:*").partition(":")
    if backend != "level_zero":
        return []
    return kept if wanted == "*" else [kept[int(part)] for part in wanted.split(",") if int(part) < len(kept)]


def listed(card: FakeCard, number: int, version: int) -> dict[str, object]:
    """One entry of `discovery -j`."""
    v2 = version > 1
    return {
        "function_type" if v2 else "device_function_type": "physical",
        "device_id": number,
        "device_name": card.name,
        "device_type": "GPU",
        "drm_device_path" if v2 else "drm_device": card.node,
        "pci_bdf_address": card.bdf,
        "pci_device_id": "0xe223",
        "soc_uuid" if v2 else "uuid": card.uuid,
        "vendor_name": "Intel(R) Corporation",
    }


def detailed(card: FakeCard, number: int, version: int) -> dict[str, object]:
    """The answer to `discovery -d ID -j`."""
    return listed(card, number, version) | {
        "driver_version": "I915_25.18.33578.51",
        "memory_physical_size_byte": "34242297856",
        "memory_free_size_byte": card.free_bytes,
        "number_of_tiles": "1",
        "pcie_generation": "N/A",
        "serial_number": "unknown",
    }


def clients_of(machine: FakeMachine, numbers: list[int]) -> list[dict[str, object]]:
    """The rows of `ps -j`: processes of the machine on visible cards, and the program itself on each of them."""
    return [
        {"device_id": number, "mem_size": size, "process_id": pid, "process_name": name, "shared_mem_size": 0}
        for number, unfiltered in enumerate(numbers)
        for card, pid, name, size in (*machine.clients, (unfiltered, os.getpid(), "xpu-smi", 2776))
        if card == unfiltered
    ]


def answer(machine: FakeMachine, words: list[str]) -> dict[str, object]:
    """What the program says to some words."""
    numbers = visible(len(machine.cards), dict(os.environ))
    match words:
        case ["discovery", "-j"]:
            there = [listed(machine.cards[one], number, machine.version) for number, one in enumerate(numbers)]
            return {"device_list": there}
        case ["discovery", "-d", number, "-j"] if int(number) < len(numbers):
            return detailed(machine.cards[numbers[int(number)]], int(number), machine.version)
        case ["ps", "-j"]:
            return {"device_util_by_proc_list": clients_of(machine, numbers)}
        case _:
            return {"error": "device not found", "errno": DEVICE_NOT_FOUND}


def main() -> int:
    """Answer one question."""
    machine, words = loaded(Path(__file__).parent / MACHINE), sys.argv[1:]
    if machine.hangs_in and machine.hangs_in in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(3600)
    if " ".join(words) in machine.raw:
        sys.stdout.write(machine.raw[" ".join(words)])
        return 0
    if words == ["-v"]:
        sys.stdout.write("CLI:\n    Version: 1.3.1.20250808\n    Build ID: f847c0fa\n")
        return 0
    said = answer(machine, words)
    sys.stdout.write(json.dumps(said, indent=4) + "\n")
    return DEVICE_NOT_FOUND if "error" in said else 0


if __name__ == "__main__":
    sys.exit(main())
