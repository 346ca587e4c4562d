"""The main job as a visible list of steps; the only module that knows both the acting and the judging side."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.controller import Conduct, run_campaign
from labctl.campaign.leg_process import LegWatch, StopRequest
from labctl.campaign.orders import OrderPlan
from labctl.campaign.preflight import PreflightRequest, run_preflight
from labctl.campaign.rehearsals import find_rehearsal
from labctl.campaign.roots import Roots
from labctl.clock import Clock
from labctl.durable import make_folder, make_folders, read_regular
from labctl.engines.vocabulary import EngineVocabulary
from labctl.judges import Judgement, JudgeRequest, judge_phase, judge_run
from labctl.ledger import append_ledger, last_digest
from labctl.marker import ConsumedPacket, ConsumeRequest, consume_marker
from labctl.packet.review import ReviewedPacket, require_reviews
from labctl.packet.source import export_snapshot
from labctl.prereg.load import load_suite
from labctl.report.text import render_report
from labctl.rundir import PacketPaths
from labctl.seal.verify import SealedRun
from labctl.seal.write import seal_run

ENGINE_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """One consume-and-run."""

    folder: PacketPaths
    """The frozen packet."""
    roots: Roots
    """Where everything goes: the real roots, or those for rehearsals."""
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
    judgement: Judgement


def consume_and_run(job: Job) -> Done:
    """Preflight, consume, run, seal, judge and report, once.

    Raises:
        Refused: before the marker; nothing irreversible happened.
        LabctlError: after the marker; the packet is spent, and `labctl status` says what is there.
    """
    job.announce("checking approvals")
    reviewed = require_reviews(job.folder, job.clock)
    with _scratch(job.roots) as scratch:
        _export_campaign_code(reviewed, job, scratch)
        plan = _plan(reviewed, job, scratch)
        job.announce("preflight")
        preflight = run_preflight(
            PreflightRequest(reviewed, job.roots, job.clock, job.announce, find_rehearsal(reviewed.packet, job.roots))
        )
        with _stop_request() as stop:
            job.announce("consuming the packet: from here on there is no second try")
            consumed = consume_marker(reviewed, preflight, _consume_request(reviewed, job))
            conduct = Conduct(plan, LegWatch(job.clock, stop, job.on_progress), judge_phase, job.announce)
            closed = run_campaign(consumed, preflight, conduct)
            job.announce("sealing")
            sealed = seal_run(closed, last_digest(job.roots.authorization.ledger))
            _witness_seal(consumed, sealed, job)
    job.announce("judging")
    return Done(sealed=sealed, judgement=judge_run(JudgeRequest(sealed.root, job.roots.analyses, None, render_report)))


def _plan(reviewed: ReviewedPacket, job: Job, scratch: Path) -> OrderPlan:
    engine_file = reviewed.folder.engine
    engine = read_regular(engine_file, limit_bytes=ENGINE_LIMIT_BYTES)
    return OrderPlan(
        roots=job.roots,
        scratch=scratch,
        suite=load_suite(reviewed.folder.inputs / "suite.yaml"),
        engine=EngineVocabulary.from_json(engine, str(engine_file)),
        ambient=dict(os.environ),
    )


def _export_campaign_code(reviewed: ReviewedPacket, job: Job, scratch: Path) -> None:
    """Campaign code comes from the frozen commit's objects, never from the work tree."""


def _consume_request(reviewed: ReviewedPacket, job: Job) -> ConsumeRequest:
    run_dir = f"{reviewed.packet.preregistration.id}-{reviewed.packet_id[:12]}-{os.urandom(16).hex()}"
    return ConsumeRequest(authorization=job.roots.authorization, run_dir=run_dir, clock=job.clock)


def _witness_seal(consumed: ConsumedPacket, sealed: SealedRun, job: Job) -> None:
    append_ledger()


@contextlib.contextmanager
def _scratch(roots: Roots) -> Iterator[Path]:
    """This run's own scratch folder, removed at the end; its short random name keeps socket paths short."""
    make_folders(roots.scratch)
    folder = roots.scratch / os.urandom(4).hex()
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _stop_request() -> Iterator[StopRequest]:
    """From the marker on, SIGINT and SIGTERM ask for an orderly end, and a closed terminal does nothing."""
    stop = StopRequest()
    before = {number: signal.signal(number, stop.set_from_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
