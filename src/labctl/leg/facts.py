"""Running a leg: what the start looks like from outside when it is ready, and again after the last prompt."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from labctl.errors import ServerNotReady
from labctl.host.process_facts import (
    Mapping,
    SharedSegment,
    executable_lines,
    mapped_files,
    see_process,
    shared_segments,
)
from labctl.host.processes import ProcessIdentity, is_running
from labctl.records.leg import Listener, ProcessRecord, ProcessSeen, Readiness
from labctl.records.order import WorkOrder
from labctl.servers.process import ServerProcess
from labctl.servers.readiness import server_exited
from labctl.servers.sockets import listeners


@dataclass(frozen=True, slots=True)
class ReadyFacts:
    """The start when it was ready."""

    readiness: Readiness
    root: ProcessSeen
    tree: tuple[ProcessSeen, ...]
    listeners: tuple[Listener, ...]
    mappings: frozenset[Mapping]
    segments: frozenset[SharedSegment]


@dataclass(frozen=True, slots=True)
class LastFacts:
    """The start after the last prompt, before the stop."""

    listeners: tuple[Listener, ...]
    roots: tuple[int, ...]
    mappings: frozenset[Mapping]
    segments: frozenset[SharedSegment]


def see_ready(order: WorkOrder, server: ServerProcess, readiness: Readiness) -> ReadyFacts:
    """Look at the whole start when it is ready.

    Raises:
        ServerNotReady: the root ended meanwhile (SERVER_EXITED).
    """
    family = server.family()
    seen = _see(family, order.environment.keys())
    root = next((process for process in seen if process.pid == server.root.pid), None)
    if root is None:
        raise ServerNotReady(server_exited(server, server.exit_status() or 0))
    return ReadyFacts(
        readiness=readiness,
        root=root,
        tree=tuple(process for process in seen if process.pid != root.pid),
        listeners=listeners(order.port, family),
        mappings=_mappings(family),
        segments=shared_segments(family),
    )


def see_last(order: WorkOrder, server: ServerProcess) -> LastFacts:
    """Look at what must not have changed, and at what was loaded since."""
    family = server.family()
    return LastFacts(
        listeners=listeners(order.port, family),
        roots=(server.root.start_ticks,) if is_running(server.root) else (),
        mappings=_mappings(family),
        segments=shared_segments(family),
    )


def process_record(ready: ReadyFacts, last: LastFacts) -> ProcessRecord:
    """The content of `process.json`."""
    return ProcessRecord(
        root=ready.root,
        tree=ready.tree,
        listeners=ready.listeners,
        listeners_after=last.listeners,
        roots_after=last.roots,
        readiness=ready.readiness,
    )


def maps_text(ready: ReadyFacts, last: LastFacts) -> bytes:
    """The content of `maps.txt`: what was mapped when ready or after the last prompt."""
    return executable_lines(ready.mappings | last.mappings)


def _see(family: Iterable[ProcessIdentity], allowed: Collection[str]) -> tuple[ProcessSeen, ...]:
    return tuple(seen for process in family if (seen := see_process(process, allowed)) is not None)


def _mappings(family: Iterable[ProcessIdentity]) -> frozenset[Mapping]:
    return frozenset(mapping for process in family for mapping in mapped_files(process))
