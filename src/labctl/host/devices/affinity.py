"""Showing a process exactly one card, and noticing that somebody has done so already."""

import os
import threading
from collections.abc import Mapping
from types import MappingProxyType

from labctl.prereg.cards import CardVendor
from labctl.records.devices import Card

AFFINITY_VARIABLES: Mapping[CardVendor, tuple[str, ...]] = MappingProxyType(
    {
        CardVendor.CPU: (),
        CardVendor.NVIDIA: ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
        # The hierarchy hides nothing, but it changes what the numbers of a mask mean.
        CardVendor.INTEL: (
            "ZE_AFFINITY_MASK",
            "ONEAPI_DEVICE_SELECTOR",
            "SYCL_DEVICE_FILTER",
            "ZE_FLAT_DEVICE_HIERARCHY",
            "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
        ),
    }
)
"""Variables by which a process sees fewer cards, or other numbers for them."""

SCHED_AFFINITY = "sched_affinity"


def affinity_environment(card: Card) -> dict[str, str]:
    """The variables that make a child see this card alone; CPU sets need none, see `apply_affinity`."""
    match card.vendor:
        case CardVendor.CPU:
            return {}
        case CardVendor.NVIDIA:
            return {"CUDA_VISIBLE_DEVICES": card.identity}
        case CardVendor.INTEL:
            # The mask knows numbers only; that it met the right card is proved by what the child then sees.
            return {"ZE_AFFINITY_MASK": str(card.index), "ONEAPI_DEVICE_SELECTOR": "level_zero:0"}


def apply_affinity(card: Card) -> None:
    """Bind this process, and all that it starts from now on, to the CPUs of a CPU card; nothing for other vendors."""
    if card.vendor is CardVendor.CPU:
        os.sched_setaffinity(0, cpus_of_text(card.bus_id))


def filters_in_force(vendor: CardVendor, environment: Mapping[str, str]) -> dict[str, str]:
    """What hides cards from a process with this environment: variables, or the CPUs that this process is bound to."""
    if vendor is CardVendor.CPU:
        bound = os.sched_getaffinity(0)
        return {} if bound == allowed_cpus() else {SCHED_AFFINITY: text_of_cpus(bound)}
    return {name: environment[name] for name in AFFINITY_VARIABLES[vendor] if name in environment}


def allowed_cpus() -> set[int]:
    """Every CPU that this process could be bound to: those that are online, within its control group."""
    found: set[int] = set()

    def look() -> None:
        # Affinity belongs to the thread, so a thread that ends at once can ask for everything and harm nothing.
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
        found.update(os.sched_getaffinity(0))

    thread = threading.Thread(target=look, name="labctl-allowed-cpus")
    thread.start()
    thread.join()
    return found


def text_of_cpus(cpus: set[int]) -> str:
    """A set of CPUs as the kernel writes it, such as `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def cpus_of_text(text: str) -> set[int]:
    """The inverse of `text_of_cpus`.

    Raises:
        ValueError: the text is no set of CPUs.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
