"""Intel cards, as `xpu-smi` tells about them."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labctl.codes import Code
from labctl.digest import sha256_file
from labctl.errors import MalformedRecord, PreflightFailed, Problem
from labctl.frozen import strict_json
from labctl.host.boot import SYSTEM
from labctl.host.devices.affinity import AFFINITY_VARIABLES
from labctl.host.devices.asking import ask
from labctl.host.devices.seen import Seen
from labctl.host.devices.sysfs import drm_nodes
from labctl.host.devices.xpu_smi_answers import Client, Detail, Listed, read_clients, read_detail, read_list
from labctl.prereg.cards import CardVendor
from labctl.records.devices import Card, CardProcess, DeviceTool, ToolAnswer

PASSED = ("PATH", "HOME", "LD_LIBRARY_PATH")
_VERSION = re.compile(r"Version: *(\S+)")


@dataclass(frozen=True, slots=True)
class IntelReader:
    """Cards by `xpu-smi`, which honours the affinity of its environment like any other program."""

    xpu_smi: Path
    """The tool; named itself, since a wrapper's child would look like a stranger on every card."""
    timeout_s: float
    """Each question ends after so long; the tool hangs where a device is lost."""
    system: Path = SYSTEM

    @property
    def vendor(self) -> CardVendor:
        """Intel."""
        return CardVendor.INTEL

    def every_card(self) -> Seen:
        """All cards, asked without any affinity."""
        return self._look({})

    def visible_cards(self, environment: Mapping[str, str]) -> Seen:
        """The cards that the affinity variables of an environment leave; the only one left has index 0."""
        names = (name for name in AFFINITY_VARIABLES[CardVendor.INTEL] if name in environment)
        return self._look({name: environment[name] for name in names})

    def _look(self, affinity: Mapping[str, str]) -> Seen:
        environment = {name: os.environ[name] for name in PASSED if name in os.environ} | {"LC_ALL": "C", **affinity}
        said: list[ToolAnswer] = []

        def asked(*words: str) -> ToolAnswer:
            said.append(ask((str(self.xpu_smi), *words), environment, self.timeout_s))
            return said[-1]

        version = asked("-v")
        listed = read_list(_json(asked("discovery", "-j")), "xpu-smi discovery -j")
        details = [self._detail(asked("discovery", "-d", str(one.index), "-j"), one) for one in listed]
        answer = asked("ps", "-j")
        clients = read_clients(_json(answer), "xpu-smi ps -j")
        cards = tuple(
            self._card(one, detail, [client for client in clients if client.index == one.index], answer.pid)
            for one, detail in zip(listed, details, strict=True)
        )
        return Seen(cards, self._tool(version), tuple(said), problems=tuple(_twins(cards)))

    def _detail(self, answer: ToolAnswer, one: Listed) -> Detail:
        return read_detail(_json(answer), f"xpu-smi discovery -d {one.index} -j")

    def _card(self, one: Listed, detail: Detail, clients: list[Client], observer_pid: int) -> Card:
        kernel = drm_nodes(one.bus_id, self.system)
        return Card(
            vendor=CardVendor.INTEL,
            identity=one.uuid,
            bus_id=one.bus_id,
            drm_node=one.drm_node or next(iter(kernel), None),
            nodes=tuple(dict.fromkeys((*([one.drm_node] if one.drm_node else ()), *kernel))),
            index=one.index,
            name=one.name,
            driver=detail.driver,
            memory_total_bytes=detail.memory_bytes,
            memory_used_bytes=None if detail.free_bytes is None else detail.memory_bytes - detail.free_bytes,
            processes=tuple(_process(client, observer_pid) for client in sorted(clients, key=lambda one: one.pid)),
        )

    def _tool(self, version: ToolAnswer) -> DeviceTool:
        found = _VERSION.search(version.stdout)
        digest = sha256_file(self.xpu_smi)[0]
        return DeviceTool(name="xpu-smi", version=found[1] if found else "", path=str(self.xpu_smi), sha256=digest)


def _process(client: Client, observer_pid: int) -> CardProcess:
    # The tool opens every card to look at it, and so reports itself; by id, since anybody can have its name.
    role: Literal["observer", "client"] = "observer" if client.pid == observer_pid else "client"
    return CardProcess(pid=client.pid, name=client.name, memory_bytes=client.memory_bytes, role=role)


def _twins(cards: tuple[Card, ...]) -> Iterator[str]:
    """Some drivers give every card of a kind one UUID."""
    for card in cards:
        if sum(card.identity == other.identity for other in cards) > 1:
            yield f"{card.bus_id}: the UUID {card.identity} names more than one card"


def _json(answer: ToolAnswer) -> object:
    where = f"`{' '.join(answer.argv)}`"
    try:
        value: object = strict_json(answer.stdout.encode(), where)
    except MalformedRecord as error:
        got = f"{error.problems[0].got}, exit status {answer.exit_status}"
        raise _refusal(where, "JSON", got) from error
    if answer.exit_status != 0 or (isinstance(value, dict) and "error" in value):
        said = value.get("error") if isinstance(value, dict) else value
        raise _refusal(where, "an answer with exit status 0", f"{said}, exit status {answer.exit_status}")
    return value


def _refusal(where: str, expected: str, got: str) -> PreflightFailed:
    do = "run it by hand; see docs/devices.md for the versions that are known to work"
    return PreflightFailed(Problem(Code.PREFLIGHT, where, expected, got, do))
