"""What preflight looks at: each check yields what must hold, what was found, and what to do where it does not."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.card_checks import card_looks, watched_cards
from labctl.campaign.idle_check import idle_look
from labctl.campaign.ledger_mirror import LedgerMirror
from labctl.campaign.look import Look, attempted
from labctl.campaign.noise_check import noise_looks
from labctl.campaign.roots import Roots
from labctl.campaign.secret_scan import Secrets
from labctl.campaign.storage_checks import storage_looks, trust_looks
from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import AlreadyConsumed, DirtySource, LabctlError, Problem
from labctl.host.boot import boot_id, machine_id_sha256
from labctl.host.devices.discovery import reader_of
from labctl.marker import require_unspent
from labctl.packet.opening import read_vocabulary
from labctl.packet.remote import is_on_remote
from labctl.packet.review import ReviewedPacket
from labctl.packet.source import export_snapshot
from labctl.prereg.host_profile import Devices
from labctl.prereg.model import CampaignClass
from labctl.servers.sockets import prove_port_free

SOCKET_PATH_LIMIT_BYTES = 107
LONGEST_SOCKET_NAME_BYTES = 36  # a UUID, which is what engines name their sockets


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """What preflight looks at."""

    reviewed: ReviewedPacket
    """The packet."""
    roots: Roots
    """Where labctl would write."""
    scratch: Path
    """This run's own scratch folder, into which the frozen commit is exported."""
    clock: Clock
    """For the idle window."""
    announce: Callable[[str], None]
    """Tells people what happens now."""
    rehearsal_seal_sha256: str | None
    """The seal of a rehearsal of what this packet runs, with the real service, where there is one."""


def every_look(request: PreflightRequest) -> Iterator[Look]:
    """Every check, in an order in which the cheap ones come first."""
    authorization, packet_id = request.reviewed.folder.root.parent.parent, request.reviewed.packet_id
    packet = request.reviewed.packet
    yield from attempted("unspent", "no marker and no ledger line", lambda: _unspent(request), str(authorization))
    yield from storage_looks(request.roots, packet.host.storage, packet.preregistration.campaign_class)
    yield from trust_looks(request.roots)
    yield from attempted("host", "a boot id and a machine id", lambda: (boot_id(), machine_id_sha256()), packet_id)
    yield assertions_look()
    yield from _secrets(request)
    yield _socket_path(request)
    yield from _port(request)
    yield from _rehearsal(request)
    yield from _snapshot(request)
    yield from _remote(request)
    yield from noise_looks(request.reviewed)
    yield from _mirror(request)
    cards = tuple(_cards(request))
    yield from cards
    yield _idle(request)
    if all(look.is_met for look in cards):
        yield from _cards(request)  # still free when the window has ended


def _unspent(request: PreflightRequest) -> None:
    """Marker and ledger are the witnesses; a run of this packet in the runs root is a third."""
    packet_id = request.reviewed.packet_id
    require_unspent(request.roots.authorization, packet_id)
    name = f"{request.reviewed.packet.preregistration.id}-{packet_id[:12]}-*"
    runs = sorted(request.roots.runs.glob(name)) if request.roots.runs.is_dir() else []
    if runs:
        do = "find out who removed marker and ledger line, and freeze the next attempt"
        raise AlreadyConsumed(Problem(Code.CONSUMED, str(runs[0]), "no run of this packet", "one", do))


def assertions_look() -> Look:
    """No code of ours rests on assertions, but the libraries that it uses may."""
    got, do = f"optimization level {sys.flags.optimize}", "unset PYTHONOPTIMIZE, and start Python without -O"
    expected = "an interpreter that keeps assertions"
    return Look("assertions", Code.PREFLIGHT, expected, got, is_met=sys.flags.optimize == 0, do=do)


def _secrets(request: PreflightRequest) -> Iterator[Look]:
    """A secret in the packet would be in the run; better to know before the marker."""
    secrets = Secrets.of_environment(os.environ)
    found = secrets.hits(request.reviewed.folder.root)
    expected, do = "no value of a secret variable in the packet's files", "remove it from the campaign, and freeze anew"
    if not found:
        got = f"none of {len(secrets.values)} values"
        yield Look("secrets", Code.SECRET_FOUND, expected, got, is_met=True)
    for problem in found:
        got = f"{problem.where}, {problem.got}"
        yield Look("secrets", Code.SECRET_FOUND, expected, got, is_met=False, do=do)


def _socket_path(request: PreflightRequest) -> Look:
    is_on_cards = request.reviewed.packet.engine_sha256 is None
    if is_on_cards or read_vocabulary(request.reviewed.folder).is_stand_in:
        return Look("socket_path", Code.PREFLIGHT, "room for socket names", "the engine needs none", is_met=True)
    longest = len(os.fsencode(request.scratch / "A99" / "tmp")) + 1 + LONGEST_SOCKET_NAME_BYTES
    return Look(
        "socket_path",
        Code.PREFLIGHT,
        f"at most {SOCKET_PATH_LIMIT_BYTES} bytes for a socket in a start's TMPDIR",
        f"{longest} bytes",
        is_met=longest <= SOCKET_PATH_LIMIT_BYTES,
        do="set a shorter roots.scratch in the host profile",
    )


def _port(request: PreflightRequest) -> Iterator[Look]:
    network = request.reviewed.packet.host.network
    if network.port == 0:
        yield Look("port", Code.PORT_TAKEN, "a free port for each start", "picked as a leg starts", is_met=True)
        return
    expected = f"port {network.port} free"
    yield from attempted("port", expected, lambda: prove_port_free(network.address, network.port), network.address)


def _rehearsal(request: PreflightRequest) -> Iterator[Look]:
    packet = request.reviewed.packet
    if packet.kind == "rehearsal" or packet.preregistration.campaign_class is not CampaignClass.RECORD:
        return
    waived, seal = packet.preregistration.rehearsal_waived, request.rehearsal_seal_sha256
    yield Look(
        "rehearsal",
        Code.REHEARSAL_MISSING,
        "a sealed rehearsal of what this packet runs, with the real service",
        f"waived: {waived}" if waived else (seal or "none"),
        is_met=waived is not None or seal is not None,
        do="run `labctl rehearse CAMPAIGN --service real`",
    )


def _snapshot(request: PreflightRequest) -> Iterator[Look]:
    """Campaign files and code come from the frozen commit's objects, never from the work tree."""
    frozen = request.reviewed.packet.repository
    if request.reviewed.packet.kind == "rehearsal":
        return
    request.announce(f"exporting commit {frozen.commit[:12]}")
    found: list[str] = []

    def export() -> None:
        found.append(export_snapshot(request.roots.repository, frozen.commit, request.scratch / "campaign"))

    yield from attempted("snapshot", "every object of the commit", export, frozen.commit)
    if found:
        do = "restore the repository's objects; the packet was frozen from others"
        is_same = found[0] == frozen.tree_dirhash
        yield Look("snapshot.content", Code.FILE_DRIFT, frozen.tree_dirhash, found[0], is_met=is_same, do=do)


def _remote(request: PreflightRequest) -> Iterator[Look]:
    """Class record: reviewers must be able to see the commit, so it must be on the remote that the host names."""
    packet = request.reviewed.packet
    if packet.kind == "rehearsal" or packet.preregistration.campaign_class is not CampaignClass.RECORD:
        return
    remote = packet.host.remote or "origin"
    is_there = is_on_remote(request.roots.repository, packet.repository.commit, remote)
    got, do = "there" if is_there else "not there", f"run `git push {remote}`"
    yield Look("remote", Code.PREFLIGHT, f"the commit on {remote}", got, is_met=is_there, do=do)


def _mirror(request: PreflightRequest) -> Iterator[Look]:
    """No machine has mirrored a consumption of this packet, and a record's consumption can be mirrored at once."""
    packet = request.reviewed.packet
    is_record = packet.preregistration.campaign_class is CampaignClass.RECORD
    remote = packet.host.remote or ("origin" if is_record else None)
    if packet.kind == "rehearsal" or remote is None:
        return
    mirror = LedgerMirror(request.roots.repository, remote, request.roots.authorization)
    expected = f"a ledger that continues its mirror on {remote}, and no line of this packet there"
    try:
        lines = mirror.require_agreement(request.reviewed.packet_id)
        mirror.prove_writable()
    except DirtySource as error:
        got, do = f"no answer: {error.problems[0].got}", f"make {remote} reachable and writable"
        yield Look("mirror", Code.PREFLIGHT, expected, got, is_met=not is_record, do=do)
    except LabctlError as error:
        for problem in error.problems:
            yield Look("mirror", problem.code, problem.expected, problem.got, is_met=False, do=problem.do)
    else:
        yield Look("mirror", Code.PREFLIGHT, expected, f"{lines} lines there", is_met=True)


def _cards(request: PreflightRequest) -> Iterator[Look]:
    packet = request.reviewed.packet
    cards, devices = watched_cards(packet.preregistration, packet.host), packet.host.devices or Devices()
    if cards is not None:
        request.announce(f"looking at {cards.vendor.value} cards")
        yield from card_looks(reader_of(cards, devices), cards, devices, request.clock)


def _idle(request: PreflightRequest) -> Look:
    idle = request.reviewed.packet.host.idle
    if idle.window_s:
        request.announce(f"measuring load for {idle.window_s} s")
    return idle_look(idle, request.clock)
