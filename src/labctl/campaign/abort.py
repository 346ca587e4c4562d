"""Seal a run that its controller left behind: as aborted, witnessed by the ledger, with its scratch folder removed."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from labctl.campaign.leftovers import end_what_the_dead_left
from labctl.campaign.roots import Roots
from labctl.campaign.secret_scan import Secrets
from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import NotFound, Problem
from labctl.ledger import LedgerEvent, append_ledger, last_digest, read_ledger
from labctl.marker_state import MarkerValid, find_marker
from labctl.packet.opening import open_packet
from labctl.rundir import AuthorizationPaths
from labctl.seal.abort import Abortion, restore_copies, seal_aborted
from labctl.seal.verify import SealedRun, SealState, open_sealed_run, seal_state


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """Which run, and why."""

    run: Path
    """The run's folder, or the place where it would be if its controller had come that far."""
    authorizations: tuple[AuthorizationPaths, ...]
    """Where its marker may lie."""
    repository: Path
    """The top of the campaign repository, from which the host profile's relative paths start."""
    reason: str
    """One line."""
    clock: Clock
    """Labels the journal's last entry and the ledger line."""
    secrets: Secrets
    """What nothing of a run may hold; where it holds one, the reason says so."""


def abort_run(request: AbortRequest) -> SealedRun:
    """Seal a run as aborted; of a run that is sealed but not in the ledger, only the missing line is added.

    Raises:
        Refused: the run is sealed and witnessed already, its controller still lives, or no marker names it.
        BrokenEvidence: what is there cannot be sealed.
    """
    run = request.run.resolve()
    roots, marker = _marker_of(run, request)
    if seal_state(run) is SealState.SEALED and not is_witnessed(roots.authorization, run.name):
        sealed = open_sealed_run(run)
    else:
        packet = roots.authorization.packet(marker.marker.packet_sha256)
        end_what_the_dead_left(request.clock)
        restore_copies(run, packet, marker.data)
        reason = "; ".join((request.reason, *map(str, request.secrets.hits(run))))
        sealed = seal_aborted(run, Abortion(reason, last_digest(roots.authorization.ledger), request.clock))
    _remove_scratch(roots.scratch_of(run.name))
    _witness(sealed, marker, roots, request.clock)
    return sealed


def is_witnessed(authorization: AuthorizationPaths, run_dir: str) -> bool:
    """Whether the ledger has a line for the seal of a run."""
    return any(line.event == "sealed" and line.run_dir == run_dir for line in read_ledger(authorization.ledger))


def _marker_of(run: Path, request: AbortRequest) -> tuple[Roots, MarkerValid]:
    for authorization in request.authorizations:
        try:
            marker = find_marker(authorization, run.name)
        except NotFound:
            continue
        packet = open_packet(authorization.packet(marker.marker.packet_sha256))
        roots = replace(Roots.of_packet(packet, request.repository), authorization=authorization)
        if not run.exists() and run.parent != roots.runs.resolve():
            do = f"name {roots.runs / run.name}"
            raise NotFound(Problem(Code.NOT_FOUND, str(run), "the run's place in its runs root", "another place", do))
        return roots, marker
    places = ", ".join(str(authorization.markers) for authorization in request.authorizations)
    do = "name the authorization root under which the run was consumed with --authorization"
    raise NotFound(Problem(Code.NOT_FOUND, run.name, "a marker that names this run", f"none in {places}", do))


def _remove_scratch(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)


def _witness(sealed: SealedRun, marker: MarkerValid, roots: Roots, clock: Clock) -> None:
    packet = open_packet(roots.authorization.packet(marker.marker.packet_sha256))
    event = LedgerEvent(
        event="sealed",
        packet_sha256=packet.id,
        campaign=packet.preregistration.id,
        run_dir=sealed.run_dir,
        digest=sealed.seal_sha256,
        wall_ns=clock.realtime_ns(),
    )
    append_ledger(roots.authorization.ledger, event)
