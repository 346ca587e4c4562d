"""Cards as a machine shows them: by what stays the same when a process sees only one of them."""

from collections.abc import Iterator
from typing import Literal, assert_never
from uuid import UUID

from pydantic import Field

from labctl.frozen import FrozenModel, Sha256
from labctl.prereg.cards import CardIdentity, CardVendor
from labctl.prereg.field_types import EnvironmentName

STABLE = ("identity", "bus_id", "drm_node")
"""Fields that name a card; `index` is none of them, since a card that is seen alone is renumbered to 0."""


class CardProcess(FrozenModel):
    """One process that uses a card."""

    pid: int
    """Its id."""
    name: str
    """Its name, as the tool or the kernel gives it."""
    memory_bytes: int | None
    """Device memory that it holds; null: not told."""
    role: Literal["client", "observer", "tolerated", "bystander"]
    """`observer`: the tool that we asked, which shows itself; `tolerated`: a service that the host profile names;
    `bystander`: it holds the node open, and by the tool's word works on another card."""


class Card(FrozenModel):
    """One card."""

    vendor: CardVendor
    """Who makes it."""
    identity: CardIdentity
    """What names it for good: the UUID, as the vendor's tool writes it, or `cpu:` and the set of CPUs."""
    bus_id: str
    """The PCI address, as `0000:23:00.0`; for CPUs the set, as `0-1`."""
    drm_node: str | None
    """The card's node in /dev/dri; null where it has none."""
    nodes: tuple[str, ...]
    """Every device node through which a process would use it."""
    index: int
    """Its number among the cards that were visible: never an identity."""
    name: str
    """As the tool gives it."""
    driver: str
    """The driver's version."""
    memory_total_bytes: int
    """All of its memory."""
    memory_used_bytes: int | None
    """Memory in use; null: not told."""
    processes: tuple[CardProcess, ...]
    """Processes that use it, by id."""

    def same_card_conflicts(self, other: "Card") -> Iterator[tuple[str, str, str]]:
        """Stable fields in which another look at this card differs: the field, here, and there."""
        for field in STABLE:
            here, there = (_told_by_anybody(getattr(card, field)) for card in (self, other))
            if here != there:
                yield field, here, there


class ToolAnswer(FrozenModel):
    """What a tool said, word for word."""

    argv: tuple[str, ...]
    """How it was asked."""
    pid: int
    """Its process."""
    exit_status: int
    """How it ended."""
    stdout: str
    """What it printed."""
    stdout_sha256: Sha256
    """The digest of those bytes."""


class DeviceTool(FrozenModel):
    """What told about the cards."""

    name: str
    """Such as `NVML` or `xpu-smi`."""
    version: str
    """Its version, as it says."""
    path: str | None
    """The file that ran; null: a library."""
    sha256: Sha256 | None
    """Its digest; null: a library."""


class Discovery(FrozenModel):
    """`host/devices.json`, unfiltered, and a leg's `discovery.json`, filtered to its card."""

    schema_id: Literal["labctl/devices/1"] = Field(default="labctl/devices/1", alias="schema")
    """The format of this document."""
    vendor: CardVendor
    """Whose cards were looked for."""
    filtered_by: dict[EnvironmentName | Literal["sched_affinity"], str]
    """What hid other cards: variables with their values, or the CPUs of the process; empty: nothing did."""
    cards: tuple[Card, ...]
    """What was found, by bus address."""
    tool: DeviceTool
    """What told so."""
    answers: tuple[ToolAnswer, ...]
    """The tool's own words, where it has any."""
    remarks: tuple[str, ...]
    """What a reader must know, such as cards that share CPUs."""
    problems: tuple[str, ...]
    """What is wrong, one line each; a campaign is refused on any."""
    wall_ns: int
    """UTC, for labels."""
    mono_ns: int
    """The monotonic clock."""


class CardState(FrozenModel):
    """A card after a leg, beside the card before it."""

    before: Card
    """Before the leg."""
    after: Card
    """After it."""
    problems: tuple[str, ...]
    """What did not go back to what it was, one line each."""


def _told_by_anybody(stable: str | None) -> str:
    """A process that sees its CPUs cannot see which share of them it is, so `cpu:0/1of2` is told as `cpu:0`."""
    if stable is None:
        return "none"
    return stable.partition("/")[0] if stable.startswith("cpu:") else stable


def identity_from_torch(vendor: CardVendor, text: str) -> str:
    """The identity of a card, given the UUID that torch shows for it.

    Raises:
        ValueError: the text is no UUID.
    """
    match vendor:
        case CardVendor.NVIDIA:
            return f"GPU-{UUID(text)}"
        case CardVendor.INTEL:
            # torch prints the bytes as Level Zero gives them; xpu-smi prints the last byte first.
            return str(UUID(bytes=UUID(text).bytes[::-1]))
        case CardVendor.CPU:
            message = "a set of CPUs has no UUID"
            raise ValueError(message)
        case _:
            assert_never(vendor)
