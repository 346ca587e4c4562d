"""Sets of CPUs as cards, for machines without an accelerator."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from labctl.host.boot import SYSTEM
from labctl.host.devices.affinity import allowed_cpus, cpus_of_text, text_of_cpus
from labctl.host.devices.seen import Seen
from labctl.host.identity import read_host_identity
from labctl.prereg.cards import CardVendor
from labctl.records.devices import Card, DeviceTool
from labctl.records.run import HostIdentity

PREFIX = "cpu:"
_IDENTITY = re.compile(r"cpu:(?P<cpus>[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)(/[0-9]+of[0-9]+)?")


@dataclass(frozen=True, slots=True)
class CpuReader:
    """CPU cards: as many as are wanted, or exactly those that are named."""

    count: int
    """How many cards the CPUs are divided into."""
    identities: tuple[str, ...] = ()
    """The cards by name; empty: divide what is there."""
    system: Path = SYSTEM

    @property
    def vendor(self) -> CardVendor:
        """CPU."""
        return CardVendor.CPU

    def every_card(self) -> Seen:
        """The CPUs that this process may use, divided into cards of one size, or those of the names given."""
        allowed = sorted(allowed_cpus())
        named = self.identities or tuple(_divided(allowed, self.count))
        refused = {name: why for name in named if (why := _refusal(name, set(allowed)))}
        there = [name for name in named if name not in refused]
        host = read_host_identity(self.system)
        cards = tuple(_card(host, index, name) for index, name in enumerate(there))
        remarks = (*(f"{name}: {why}" for name, why in refused.items()), *_remarks(cards, allowed))
        return Seen(cards, _tool(host), remarks=remarks)

    def visible_cards(self, environment: Mapping[str, str]) -> Seen:  # noqa: ARG002 (the kernel, not the environment, says which CPUs)
        """The CPUs that this process is bound to, as one card."""
        host = read_host_identity(self.system)
        return Seen((_card(host, 0, PREFIX + text_of_cpus(os.sched_getaffinity(0))),), _tool(host))


def _refusal(name: str, allowed: set[int]) -> str:
    found = _IDENTITY.fullmatch(name)
    if found is None:
        return "no set of CPUs, such as cpu:0-3"
    missing = cpus_of_text(found["cpus"]) - allowed
    return f"CPUs {text_of_cpus(missing)} are not among {text_of_cpus(allowed)}" if missing else ""


def _card(host: HostIdentity, index: int, identity: str) -> Card:
    return Card(
        vendor=CardVendor.CPU,
        identity=identity,
        bus_id=identity.removeprefix(PREFIX).partition("/")[0],
        drm_node=None,
        nodes=(),
        index=index,
        name=host.cpu_model,
        driver=host.kernel,
        memory_total_bytes=host.memory_bytes,
        memory_used_bytes=None,
        processes=(),
    )


def _tool(host: HostIdentity) -> DeviceTool:
    return DeviceTool(name="sched_getaffinity", version=host.kernel, path=None, sha256=None)


def _divided(allowed: list[int], count: int) -> Iterator[str]:
    """Blocks of one size; where there are fewer CPUs than cards, cards take turns on single CPUs and say so."""
    size = len(allowed) // count
    if size:
        for index in range(count):
            yield PREFIX + text_of_cpus(set(allowed[index * size : (index + 1) * size]))
        return
    shares = Counter(index % len(allowed) for index in range(count))
    for index in range(count):
        turn, place = divmod(index, len(allowed))
        share = f"/{turn + 1}of{shares[place]}" if shares[place] > 1 else ""
        yield f"{PREFIX}{allowed[place]}{share}"


def _remarks(cards: tuple[Card, ...], allowed: list[int]) -> Iterator[str]:
    users = Counter(cpu for card in cards for cpu in cpus_of_text(card.bus_id))
    shared = {cpu for cpu, cards_on_it in users.items() if cards_on_it > 1}
    if shared:
        yield f"{len(cards)} cards on {len(allowed)} CPUs: cards share CPUs {text_of_cpus(shared)}"
    if idle := set(allowed) - users.keys():
        yield f"CPUs {text_of_cpus(idle)} belong to no card"
