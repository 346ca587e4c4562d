"""NVIDIA cards: NVML tells about all of them, and the CUDA driver about those that a process sees."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from labctl.codes import Code
from labctl.errors import MalformedRecord, PreflightFailed, Problem
from labctl.frozen import FrozenModel
from labctl.host.boot import SYSTEM
from labctl.host.devices.affinity import AFFINITY_VARIABLES
from labctl.host.devices.asking import ask
from labctl.host.devices.seen import Seen
from labctl.host.devices.sysfs import drm_nodes
from labctl.prereg.cards import CardVendor
from labctl.records.devices import Card, CardProcess, DeviceTool, ToolAnswer

HERE = Path(__file__).parent
PASSED = ("PATH", "HOME", "LD_LIBRARY_PATH")
PCI_DOMAIN_DIGITS = 4


class NvmlProcess(FrozenModel):
    """A process on a card, as `nvml_cards.py` prints it."""

    pid: int
    name: str
    memory_bytes: int | None


class NvmlCard(FrozenModel):
    """A card, as `nvml_cards.py` prints it."""

    index: int
    uuid: str
    bus_id: str
    minor: int
    name: str
    memory_total_bytes: int
    memory_used_bytes: int
    is_divided: bool
    processes: tuple[NvmlProcess, ...]


class NvmlAnswer(FrozenModel):
    """What `nvml_cards.py` prints."""

    driver: str
    nvml: str
    cards: tuple[NvmlCard, ...]


class CudaCard(FrozenModel):
    """A card, as `cuda_visible.py` prints it."""

    index: int
    uuid: str
    bus_id: str
    name: str
    memory_bytes: int


class CudaAnswer(FrozenModel):
    """What `cuda_visible.py` prints."""

    cards: tuple[CudaCard, ...]


class Failure(FrozenModel):
    """What either prints when it cannot answer."""

    error: str


AnswerT = TypeVar("AnswerT", NvmlAnswer, CudaAnswer)


def own_script(name: str) -> tuple[str, ...]:
    """The command that runs a script of this folder alone."""
    return (sys.executable, "-I", "-P", "-B", str(HERE / name))


@dataclass(frozen=True, slots=True)
class NvidiaReader:
    """Cards by two small processes, each with a time limit, since a driver that hangs takes its asker along."""

    timeout_s: float
    """Each question ends after so long."""
    nvml: tuple[str, ...] = own_script("nvml_cards.py")
    """The command that tells about every card."""
    cuda: tuple[str, ...] = own_script("cuda_visible.py")
    """The command that tells which cards its own process sees."""
    system: Path = SYSTEM

    @property
    def vendor(self) -> CardVendor:
        """NVIDIA."""
        return CardVendor.NVIDIA

    def every_card(self) -> Seen:
        """All cards, by NVML."""
        said, nvml = self._asked(self.nvml, {}, NvmlAnswer)
        cards = tuple(sorted((self._card(one, nvml.driver) for one in nvml.cards), key=lambda card: card.bus_id))
        return Seen(cards, _tool(nvml), (said,), problems=tuple(_divided(nvml)))

    def visible_cards(self, environment: Mapping[str, str]) -> Seen:
        """The cards that the CUDA driver shows to a process with the affinity variables of an environment."""
        names = (name for name in AFFINITY_VARIABLES[CardVendor.NVIDIA] if name in environment)
        cuda_said, cuda = self._asked(self.cuda, {name: environment[name] for name in names}, CudaAnswer)
        seen = self.every_card()
        known = {card.identity: card for card in seen.cards}
        cards = tuple(_visible(one, known[one.uuid]) for one in cuda.cards if one.uuid in known)
        strangers = tuple(f"NVML does not know {one.uuid}" for one in cuda.cards if one.uuid not in known)
        return Seen(cards, seen.tool, (cuda_said, *seen.answers), problems=seen.problems + strangers)

    def _asked(
        self, argv: tuple[str, ...], affinity: Mapping[str, str], kind: type[AnswerT]
    ) -> tuple[ToolAnswer, AnswerT]:
        environment = {name: os.environ[name] for name in PASSED if name in os.environ} | dict(affinity)
        said = ask(argv, environment, self.timeout_s)
        return said, _answer(said, kind)

    def _card(self, one: NvmlCard, driver: str) -> Card:
        bus_id = _bus_id(one.bus_id)
        drm = drm_nodes(bus_id, self.system)
        return Card(
            vendor=CardVendor.NVIDIA,
            identity=one.uuid,
            bus_id=bus_id,
            drm_node=next(iter(drm), None),
            nodes=(f"/dev/nvidia{one.minor}", *drm),
            index=one.index,
            name=one.name,
            driver=driver,
            memory_total_bytes=one.memory_total_bytes,
            memory_used_bytes=one.memory_used_bytes,
            processes=tuple(
                CardProcess(pid=process.pid, name=process.name, memory_bytes=process.memory_bytes, role="client")
                for process in one.processes
            ),
        )


def _visible(one: CudaCard, known: Card) -> Card:
    """What the driver says of the card where it says anything, and NVML's word for the rest."""
    told = {"bus_id": _bus_id(one.bus_id), "index": one.index, "name": one.name}
    return Card.model_validate(known.model_dump() | told)


def _bus_id(text: str) -> str:
    """NVML writes the PCI domain with eight digits, the kernel and CUDA with four."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-PCI_DOMAIN_DIGITS:]}:{rest}"


def _divided(answer: NvmlAnswer) -> Iterator[str]:
    for card in answer.cards:
        if card.is_divided:
            yield f"{card.uuid}: it is divided (MIG), and labctl knows whole cards only"


def _tool(answer: NvmlAnswer) -> DeviceTool:
    return DeviceTool(name="NVML", version=answer.nvml, path=None, sha256=None)


def _answer(said: ToolAnswer, kind: type[AnswerT]) -> AnswerT:
    where = f"`{' '.join(said.argv)}`"
    try:
        if said.exit_status == 0:
            return kind.from_json(said.stdout.encode(), where)
        fault = Failure.from_json(said.stdout.encode(), where).error
    except MalformedRecord as error:
        fault = error.problems[0].got
    got = f"{fault}, exit status {said.exit_status}"
    do = "install the driver and labctl's extra `nvidia`, and see whether `nvidia-smi` answers"
    raise PreflightFailed(Problem(Code.PREFLIGHT, where, "an answer", got, do))
