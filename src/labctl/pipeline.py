"""The main job as a visible list of steps; the only module that knows both the acting and the judging side."""

import contextlib
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from labctl.campaign.card_orders import CardPlan
from labctl.campaign.checks import PreflightRequest
from labctl.campaign.controller import Conduct, run_campaign
from labctl.campaign.ledger_mirror import LedgerMirror
from labctl.campaign.leftovers import end_what_the_dead_left
from labctl.campaign.leg_process import LegWatch, StopRequest, bytecode_folder
from labctl.campaign.orders import OrderPlan
from labctl.campaign.preflight import run_preflight
from labctl.campaign.rehearsals import find_rehearsal
from labctl.campaign.roots import Roots
from labctl.clock import Clock
from labctl.durable import make_folder, make_folders
from labctl.errors import BrokenEvidence, LabctlError, LegFailed, Refused, RunFailed
from labctl.host.boot import boot_id, machine_id_sha256
from labctl.host.processes import own_identity
from labctl.judges import Judgement, JudgeRequest, judge_phase, judge_run, require_analyzers
from labctl.ledger import LedgerEvent, append_ledger, last_digest
from labctl.marker import ConsumedPacket, ConsumeRequest, consume_marker, new_run_name, require_unspent
from labctl.packet.attempts import refuse_overtaken
from labctl.packet.model import Packet
from labctl.packet.opening import read_vocabulary
from labctl.packet.review import ReviewedPacket, require_reviews
from labctl.packet.stamps import InPlace, stamp_in_place
from labctl.prereg.load import load_suite
from labctl.prereg.model import CampaignClass
from labctl.records.marker import MarkerHost, PreflightPassed
from labctl.report.text import render_report
from labctl.rundir import PacketPaths
from labctl.seal.verify import SealedRun
from labctl.seal.write import seal_run

CONSUMING: dict[Literal["real", "rehearsal"], str] = {
    "real": "consuming the packet: from here on there is no second try",
    "rehearsal": "rehearsal: nothing real is consumed",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One consume-and-run."""

    folder: PacketPaths
    """The frozen packet."""
    roots: Roots
    """Where everything goes: the real roots, or those of rehearsals."""
    clock: Clock
    """The machine's clock."""
    announce: Callable[[str], None]
    """Tells people what happens now."""
    on_progress: Callable[[dict[str, object]], None]
    """Progress of a leg: which row, how many bytes."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a consume-and-run gives."""

    sealed: SealedRun
    """The run."""
    judgement: Judgement
    """Its verdict and analysis."""


def consume_and_run(job: Job) -> Done:
    """Preflight, consume, run, seal, judge and report, once.

    Raises:
        Refused: before the marker; nothing irreversible happened.
        LabctlError: after the marker; the packet is spent, and `labctl status` says what is there.
    """
    job.announce("checking the packet and its approvals")
    require_unspent(job.roots.authorization, job.folder.root.name)
    reviewed = require_reviews(job.folder, job.clock)
    refuse_overtaken(reviewed.packet, job.roots.authorization)
    run_dir = new_run_name(reviewed.packet)
    with _scratch(job.roots.scratch_of(run_dir)) as scratch:
        if ended := end_what_the_dead_left(job.clock):
            job.announce(f"ended {ended} processes of a campaign that was killed")
        in_place = stamp_in_place(reviewed.packet, job.roots.repository)
        preflight = _preflight(reviewed, job, scratch)
        with _orderly_stop() as stop:
            job.announce(CONSUMING[reviewed.packet.kind])
            consumed = consume_marker(reviewed, preflight, _consume_request(run_dir, job))
            with _packet_is_spent():
                _mirror_ledger(reviewed.packet, job)
                closed = run_campaign(consumed, preflight, _conduct(consumed, job, (scratch, stop, in_place)))
                job.announce(f"sealing {closed.paths.root}")
                sealed = seal_run(closed, last_digest(job.roots.authorization.ledger))
                _witness_seal(consumed, sealed, job)
    job.announce("the analyzers judge the sealed run")
    try:
        return Done(sealed, _judge(sealed, job))
    finally:
        _mirror_ledger(reviewed.packet, job)


def _judge(sealed: SealedRun, job: Job) -> Judgement:
    try:
        return judge_run(JudgeRequest(sealed.root, job.roots.analyses, None, render_report))
    except Refused as error:  # labctl changed while the run went on: "nothing irreversible happened" would be untrue
        raise BrokenEvidence(error.problems) from error


def _preflight(reviewed: ReviewedPacket, job: Job, scratch: Path) -> PreflightPassed:
    job.announce("preflight: nothing is started before everything holds")
    rehearsal = find_rehearsal(reviewed.packet, job.roots.repository)
    job.announce("the analyzers are started once, so that one that cannot answer costs no packet")
    require_analyzers(reviewed.packet, bytecode_folder(scratch))
    job.announce("looking at the host")
    return run_preflight(PreflightRequest(reviewed, job.roots, scratch, job.clock, job.announce, rehearsal))


def _conduct(consumed: ConsumedPacket, job: Job, run: tuple[Path, StopRequest, InPlace]) -> Conduct:
    scratch, stop, in_place = run
    plan = _order_plan(consumed, job, scratch)
    judge = partial(judge_phase, bytecode=bytecode_folder(scratch))
    return Conduct(plan, LegWatch(job.clock, stop, job.on_progress), judge, in_place, job.announce)


def _order_plan(consumed: ConsumedPacket, job: Job, scratch: Path) -> OrderPlan | CardPlan:
    if consumed.packet.preregistration.kind != "endpoint":
        return CardPlan(roots=job.roots, scratch=scratch, ambient=dict(os.environ), clock=job.clock)
    return OrderPlan(
        roots=job.roots,
        scratch=scratch,
        suite=load_suite(consumed.folder.inputs / "suite.yaml").model,
        engine=read_vocabulary(consumed.folder),
        ambient=dict(os.environ),
    )


def _consume_request(run_dir: str, job: Job) -> ConsumeRequest:
    me = own_identity()
    return ConsumeRequest(
        authorization=job.roots.authorization,
        trusted_anchor=job.roots.anchor,
        run_dir=run_dir,
        nonce=secrets.token_hex(16),
        host=MarkerHost(
            machine_id_sha256=machine_id_sha256(),
            boot_id=boot_id(),
            controller_pid=me.pid,
            controller_start_ticks=me.start_ticks,
        ),
        clock=job.clock,
    )


def _witness_seal(consumed: ConsumedPacket, sealed: SealedRun, job: Job) -> None:
    event = LedgerEvent(
        event="sealed",
        packet_sha256=consumed.packet_id,
        campaign=consumed.packet.preregistration.id,
        run_dir=consumed.marker.run_dir,
        digest=sealed.seal_sha256,
        wall_ns=job.clock.realtime_ns(),
    )
    append_ledger(job.roots.authorization.ledger, event)


def _mirror_ledger(packet: Packet, job: Job) -> None:
    """Show the new line to others; only a record must not go on without."""
    if packet.kind == "rehearsal" or packet.host.remote is None:
        return
    try:
        LedgerMirror(job.roots.repository, packet.host.remote, job.roots.authorization).publish()
    except RunFailed as error:
        if packet.preregistration.campaign_class is CampaignClass.RECORD:
            raise
        job.announce(f"the ledger is not mirrored: {error}")


@contextlib.contextmanager
def _packet_is_spent() -> Iterator[None]:
    """Whatever stops the run from here on, the exit status says that the packet is spent."""
    try:
        yield
    except LegFailed:
        raise
    except LabctlError as error:
        raise RunFailed(error.problems) from error


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """This run's own scratch folder, removed at the end."""
    make_folders(folder.parent)
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _orderly_stop() -> Iterator[StopRequest]:
    """From the marker on, SIGINT and SIGTERM ask for an orderly end, and a closed terminal does nothing."""
    stop = StopRequest()
    before = {number: signal.signal(number, stop.set_from_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
