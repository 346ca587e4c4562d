"""Running a probe leg: every rank a process on its card, bounded in time; how far they came is for the analyzers."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import write_once
from labctl.errors import LegInterrupted, Problem
from labctl.host.devices.affinity import allowed_cpus, apply_affinity
from labctl.host.devices.discovery import discover_filtered, reader_of, require_only
from labctl.host.devices.occupancy import require_free
from labctl.host.process_facts import SharedSegment, shared_segments, still_there
from labctl.leg.cards import rank_card_afterwards
from labctl.leg.children import Child, ChildCommand, Children
from labctl.leg.closing import always_ended
from labctl.leg.interruption import Interruption
from labctl.leg.private_folders import remove_private_folders
from labctl.leg.progress import Progress
from labctl.leg.reserve import Reserve
from labctl.records.card_order import ProbeOrder
from labctl.records.devices import CardState, Discovery
from labctl.records.worker import ProbePostflight, RankExit
from labctl.rundir import LegPaths

POLL_S = 0.02


@dataclass(slots=True)
class ProbeLeg:
    """What the ranks are run with, and what was seen of them."""

    order: ProbeOrder
    interruption: Interruption
    progress: Progress
    clock: Clock
    rows_completed: int = 0
    segments: set[SharedSegment] = field(default_factory=set)
    visible: list[Discovery] = field(default_factory=list)
    has_timed_out: bool = False

    @property
    def leg(self) -> LegPaths:
        """Where the records go."""
        return LegPaths(Path(self.order.paths.leg))


def run_probe_leg(leg: ProbeLeg) -> None:
    """Start every rank, wait until all have ended or their time is over, and prove that nothing is left.

    A rank that fails is a result, which the analyzers classify; the leg itself has not failed.

    Raises:
        LegFailed: a card is another one, a rank could not be started, a signal came, or something was left.
        BrokenEvidence: a record could not be written.
    """
    _see_cards(leg)
    reserve = Reserve.take(leg.leg.root)
    children = Children(leg.clock)
    with always_ended(lambda: _ended(leg, children, reserve)):
        for rank in range(leg.order.ranks):
            apply_affinity(leg.order.cards[rank])  # the child inherits it
            children.start(_command(leg.order, rank))
        os.sched_setaffinity(0, allowed_cpus())
        leg.progress.tell("started", pid=children.started[0].identity.pid)
        with leg.interruption.allowed():
            _watch(leg, children)


def _see_cards(leg: ProbeLeg) -> None:
    """Each rank will see exactly its own card: looked at with the rank's own environment and CPUs."""
    order = leg.order
    try:
        for card, own in zip(order.cards, order.rank_environment, strict=True):
            apply_affinity(card)
            reader = reader_of(order.selection, order.devices)
            leg.visible.append(discover_filtered(reader, order.environment | own, order.devices, leg.clock))
            require_free(require_only(leg.visible[-1], card), order.devices)
    finally:
        os.sched_setaffinity(0, allowed_cpus())


def _command(order: ProbeOrder, rank: int) -> ChildCommand:
    return ChildCommand(
        argv=(*order.argv, str(rank)),
        environment=order.environment | order.rank_environment[rank],
        working=Path(order.paths.working),
        log=LegPaths(Path(order.paths.leg)).rank_log(rank),
        memory_limit_bytes=order.limits.memory_limit_bytes,
    )


def _watch(leg: ProbeLeg, children: Children) -> None:
    deadline_ns = children.started[0].started_mono_ns + leg.order.timeouts.total_s * 1_000_000_000
    told = 0
    while running := children.running():
        if leg.clock.monotonic_ns() > deadline_ns:
            leg.has_timed_out = True
            leg.segments.update(shared_segments(children.family()))
            return
        for child in running:
            _require_short_log(leg, child)
        if (ended := leg.order.ranks - len(running)) > told:
            told = ended
            leg.progress.tell("rank", row=ended, of=leg.order.ranks, bytes=0)
        leg.clock.sleep(POLL_S)


def _require_short_log(leg: ProbeLeg, child: Child) -> None:
    if child.log_bytes() > leg.order.limits.log_limit_bytes:
        expected = f"at most {leg.order.limits.log_limit_bytes} bytes printed"
        where = f"rank in {child.command.log.name}"
        raise LegInterrupted(Problem(Code.LOG_LIMIT, where, expected, "more", "read its log"))


def _ended(leg: ProbeLeg, children: Children, reserve: Reserve) -> tuple[Problem, ...]:
    leg.progress.tell("stopping")
    late = {child.identity.pid for child in children.running()} if leg.has_timed_out else set()
    outlived = children.outlived()
    killed, left = children.end(leg.order.limits.stop_timeout_s)
    reserve.release()  # nobody is left who could fill it: the records of the end get the room
    for rank, child in enumerate(children.started):
        record = _rank_exit(leg, rank, child, (late, set(killed)))
        leg.rows_completed += record.exit_status == 0
        write_once(leg.leg.rank_exit(rank), record.canonical())
    postflight = ProbePostflight(
        ended_mono_ns=leg.clock.monotonic_ns(),
        timed_out=leg.has_timed_out,
        processes_left=left,
        shared_memory_left=still_there(leg.segments),
        cards=tuple(_cards_afterwards(leg)),
        outlived=outlived,
    )
    write_once(leg.leg.postflight, postflight.canonical())
    return (*_left(postflight), *remove_private_folders(leg.order.paths.scratch))


def _rank_exit(leg: ProbeLeg, rank: int, child: Child, ended: tuple[set[int], set[int]]) -> RankExit:
    late, killed = ended
    status = child.exit_status(leg.clock)
    log_bytes, log_sha256 = child.closed_log(leg.order.limits.log_limit_bytes)
    return RankExit(
        rank=rank,
        leg=leg.order.leg,
        pid=child.identity.pid,
        start_ticks=child.identity.start_ticks,
        seen=child.seen,
        started_mono_ns=child.started_mono_ns,
        ended_mono_ns=child.ended_mono_ns or leg.clock.monotonic_ns(),
        exit_status=status,
        timed_out=child.identity.pid in late,
        killed=child.identity.pid in killed,
        visible=leg.visible[rank],
        log_bytes=log_bytes,
        log_sha256=log_sha256,
    )


def _cards_afterwards(leg: ProbeLeg) -> Iterator[CardState]:
    try:
        for discovery, own in zip(leg.visible, leg.order.rank_environment, strict=True):
            state = rank_card_afterwards(leg.order, discovery.cards[0], own, leg.clock)
            if state is not None:
                yield state
    finally:
        os.sched_setaffinity(0, allowed_cpus())


def _left(postflight: ProbePostflight) -> Iterator[Problem]:
    found = [
        ("processes", ", ".join(map(str, postflight.processes_left))),
        ("shared memory", ", ".join(postflight.shared_memory_left)),
    ]
    found += [(f"card {state.after.identity}", text) for state in postflight.cards for text in state.problems]
    do = "end or remove it by hand before the next run"
    return (Problem(Code.LEFTOVER, what, "nothing after the probe", got, do) for what, got in found if got)
