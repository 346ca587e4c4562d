"""Run a consumed packet: open the run directory, run each leg in the packet's order, close. There is no retry."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from labctl.campaign.card_orders import CardPlan
from labctl.campaign.journal import Journal
from labctl.campaign.leftovers import nothing_outlives
from labctl.campaign.leg_process import LegWatch, run_leg_process, wait
from labctl.campaign.opening import open_run_directory
from labctl.campaign.order_maker import OrderMaker, order_maker
from labctl.campaign.orders import OrderPlan
from labctl.campaign.same_host import require_same_host
from labctl.campaign.secret_scan import Secrets
from labctl.codes import Code
from labctl.durable import make_folder, write_once
from labctl.errors import LabctlError, LegFailed, LegInterrupted
from labctl.marker import ConsumedPacket, require_still_consumed
from labctl.packet.stamps import InPlace
from labctl.prereg.any_campaign import schedule_of
from labctl.protocol import FIRST_PAIR, Event, Progress
from labctl.records.marker import PreflightPassed
from labctl.records.run import AbortCause, ClosedRun, Outcome, OutcomeKind
from labctl.rundir import RunPaths


class PhaseJudge(Protocol):
    """Lets the packet's analyzers judge the closed legs of a run that is still going on."""

    def __call__(self, run: Path) -> bool:
        """Whether the other legs may run: true only when every analyzer says so."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """What a run needs beside its packet."""

    plan: OrderPlan | CardPlan
    """What turns the packet into work orders on this machine."""
    watch: LegWatch
    """Clock, stop request, progress."""
    judge_phase: PhaseJudge
    """How the phase stop is answered."""
    in_place: InPlace
    """What preflight has verified, as it was stamped before."""
    announce: Callable[[str], None]
    """Tells people what happens now."""

    @property
    def secrets(self) -> Secrets:
        """What nothing of the run may hold."""
        return Secrets.of_environment(self.plan.ambient)


def run_campaign(consumed: ConsumedPacket, preflight: PreflightPassed, conduct: Conduct) -> ClosedRun:
    """Run every leg of a consumed packet, once, in the packet's order.

    A failure does not raise: the run is closed as aborted, because a failed run is evidence.

    Raises:
        LabctlError: the run directory could not be written; the packet is spent.
    """
    paths = open_run_directory(consumed, preflight, conduct.plan.roots.runs)
    schedule = schedule_of(consumed.packet.preregistration)
    progress = Progress(order=consumed.order, has_phase_stop=schedule is not None and schedule.stop_after_first_pair)
    journal = Journal(paths, progress, conduct.watch.clock)
    journal.record(Event.PREFLIGHT_RECORDED, detail=f"{len(preflight.findings)} checks met")
    try:
        outcome = _run_legs(consumed, paths, journal, conduct)
    except LabctlError as error:
        outcome = _aborted(paths, journal, conduct, error)
    journal.close()
    write_once(paths.outcome, outcome.canonical())
    return ClosedRun(paths=paths, outcome=outcome)


def _run_legs(consumed: ConsumedPacket, paths: RunPaths, journal: Journal, conduct: Conduct) -> Outcome:
    schedule = schedule_of(consumed.packet.preregistration)
    wait_s = 0 if schedule is None else schedule.wait_s
    make = order_maker(consumed, paths, conduct.plan)
    for index, leg in enumerate(consumed.order, start=1):
        if index > 1:
            wait(wait_s, conduct.watch)
        conduct.announce(f"leg {leg} ({index} of {len(consumed.order)})")
        _run_leg(consumed, (paths, make), journal, conduct)
        if journal.progress.has_phase_stop and index == FIRST_PAIR and not _may_continue(paths, journal, conduct):
            _close(paths, journal, conduct, "stopped by the registered rule")
            return _outcome(OutcomeKind.PHASE_STOPPED, journal, ("the first pair did not pass its gates",))
    _close(paths, journal, conduct, "every leg closed")
    return _outcome(OutcomeKind.COMPLETED, journal, ())


def _run_leg(consumed: ConsumedPacket, place: tuple[RunPaths, OrderMaker], journal: Journal, conduct: Conduct) -> None:
    paths, make_order = place
    leg = journal.progress.next_leg()
    if leg is None:
        message = "a leg after the last one"
        raise RuntimeError(message)
    require_still_consumed(consumed)
    conduct.in_place.require_untouched()
    index = journal.progress.closed_legs + 1
    files = paths.leg(index, leg)
    make_folder(files.root)
    order = make_order(index, files)
    write_once(files.order, order.canonical())
    journal.record(Event.LEG_STARTED, leg)
    with nothing_outlives(conduct.watch.clock):
        record = run_leg_process(files, conduct.plan.scratch, conduct.watch)
    journal.record(Event.LEG_CLOSED, leg, detail=f"{record.rows_completed} rows")
    conduct.in_place.require_untouched()
    require_same_host(paths)


def _may_continue(paths: RunPaths, journal: Journal, conduct: Conduct) -> bool:
    conduct.announce("the analyzers judge the first pair")
    make_folder(paths.phase)
    may_continue = conduct.judge_phase(paths.root)
    event = Event.PHASE_ANSWERED if may_continue else Event.PHASE_STOPPED
    journal.record(event, detail="continue" if may_continue else "stop")
    return may_continue


def _close(paths: RunPaths, journal: Journal, conduct: Conduct, detail: str) -> None:
    conduct.secrets.refuse(paths.root)
    journal.record(Event.RUN_CLOSED, detail=detail)


def _aborted(paths: RunPaths, journal: Journal, conduct: Conduct, error: LabctlError) -> Outcome:
    found = () if Code.SECRET_FOUND in error.codes else conduct.secrets.hits(paths.root)
    lines = tuple(conduct.secrets.scrubbed(str(problem)) for problem in (*error.problems, *found))
    journal.record(Event.RUN_ABORTED, detail=lines[0][:400])
    return _outcome(OutcomeKind.ABORTED, journal, lines, AbortCause.SECRET_FOUND if found else _cause(error))


def _cause(error: LabctlError) -> AbortCause:
    match error:
        case _ if Code.SECRET_FOUND in error.codes:
            return AbortCause.SECRET_FOUND
        case _ if Code.WRONG_MACHINE in error.codes:
            return AbortCause.HOST_FAULT
        case LegInterrupted():
            return AbortCause.OPERATOR
        case LegFailed():
            return AbortCause.LEG_FAILED
        case _:
            return AbortCause.EVIDENCE


def _outcome(kind: OutcomeKind, journal: Journal, detail: tuple[str, ...], cause: AbortCause | None = None) -> Outcome:
    progress = journal.progress
    return Outcome(outcome=kind, cause=cause, detail=detail, legs_closed=progress.order[: progress.closed_legs])
