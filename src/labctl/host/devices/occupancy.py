"""Whether cards are free: processes that the vendor's tool knows, processes that hold device nodes, and memory."""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal

from labctl.codes import Code
from labctl.errors import LegFailed, Problem
from labctl.host.processes import PROC
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card, CardProcess, CardState

MIB = 1 << 20


def with_holders(cards: tuple[Card, ...], tolerated: Collection[str], proc: Path = PROC) -> tuple[Card, ...]:
    """The cards, with every process that holds one of their nodes open, whether or not the vendor's tool knows it.

    CUDA opens the nodes of all cards, also of those that it is not to see: a process that the tool finds on another
    card is a bystander here. One that the tool finds nowhere counts as a client.
    """
    holders = holders_of({node for card in cards for node in card.nodes}, proc)
    elsewhere = {process.pid for card in cards for process in card.processes}
    return tuple(_with_processes(card, _in_roles(card, holders, elsewhere, tolerated)) for card in cards)


def holders_of(nodes: Collection[str], proc: Path = PROC) -> dict[str, tuple[CardProcess, ...]]:
    """Processes with an open descriptor on each node, as far as /proc shows them to us."""
    found: dict[str, dict[int, CardProcess]] = {node: {} for node in nodes}
    if not found:
        return {}
    for folder in proc.glob("[0-9]*"):
        for target in _open_files(folder):
            if target in found:
                pid = int(folder.name)
                found[target][pid] = CardProcess(pid=pid, name=_name(folder), memory_bytes=None, role="client")
    return {node: tuple(by_pid[pid] for pid in sorted(by_pid)) for node, by_pid in found.items()}


def busy_problems(cards: Iterable[Card], devices: Devices) -> tuple[Problem, ...]:
    """Everything for which cards do not count as free; CPU sets always do, their load is measured apart."""
    return tuple(problem for card in cards for problem in _busy(card, devices))


def require_free(card: Card, devices: Devices) -> Card:
    """The card, just before a leg uses it.

    Raises:
        LegFailed: somebody else has come to use it since preflight (HOST_BUSY).
    """
    problems = busy_problems((card,), devices)
    if problems:
        raise LegFailed(problems)
    return card


def card_state(before: Card, after: Card, devices: Devices) -> CardState:
    """A card beside what it was before a leg."""
    return CardState(before=before, after=after, problems=tuple(_not_restored(before, after, devices)))


def _busy(card: Card, devices: Devices) -> Iterator[Problem]:
    for process in card.processes:
        if process.role == "client":
            got = f"{process.name or 'a process'} ({process.pid})"
            yield Problem(Code.HOST_BUSY, f"card {card.identity}", "no process on it", got, "end it, or wait")
    used, limit = card.memory_used_bytes, devices.max_memory_used_mib * MIB
    if used is not None and used > limit:
        expected, got = f"at most {devices.max_memory_used_mib} MiB in use", f"{used // MIB} MiB"
        do = "find out who uses the card, or raise `devices.max_memory_used_mib`"
        yield Problem(Code.HOST_BUSY, f"card {card.identity}", expected, got, do)


def _not_restored(before: Card, after: Card, devices: Devices) -> Iterator[str]:
    for field, here, there in before.same_card_conflicts(after):
        yield f"{field}: {here} before, {there} after"
    known = {process.pid for process in before.processes}
    for process in after.processes:
        if process.role == "client" and process.pid not in known:
            yield f"{process.name or 'a process'} ({process.pid}) is on it"
    if before.memory_used_bytes is not None and after.memory_used_bytes is not None:
        grown = after.memory_used_bytes - before.memory_used_bytes
        if grown > devices.memory_slack_mib * MIB:
            yield f"{grown // MIB} MiB more in use than before, {devices.memory_slack_mib} MiB allowed"


def _in_roles(
    card: Card, holders: dict[str, tuple[CardProcess, ...]], elsewhere: Collection[int], tolerated: Collection[str]
) -> Iterator[CardProcess]:
    by_pid = {process.pid: process for node in card.nodes for process in holders[node]}
    told = {process.pid: process for process in card.processes}
    for pid in sorted(by_pid | told):
        process = told.get(pid) or by_pid[pid]
        if process.role == "client" and process.name in tolerated:
            yield _as(process, "tolerated")
        elif pid in elsewhere and pid not in told:
            yield _as(process, "bystander")
        else:
            yield process


def _as(process: CardProcess, role: Literal["tolerated", "bystander"]) -> CardProcess:
    return CardProcess(pid=process.pid, name=process.name, memory_bytes=process.memory_bytes, role=role)


def _with_processes(card: Card, processes: Iterable[CardProcess]) -> Card:
    return Card.model_validate(card.model_dump() | {"processes": tuple(one.model_dump() for one in processes)})


def _open_files(folder: Path) -> Iterator[str]:
    try:
        descriptors = list(os.scandir(folder / "fd"))
    except OSError:
        return  # it has ended, or is not ours to look at
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # it was closed meanwhile
            yield str(Path(descriptor.path).readlink())


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
