"""Step 4, consume: the one-shot marker. While anything lies at its path, the packet is spent; nothing unlinks it."""

import contextlib
import fcntl
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import make_folder, open_once
from labctl.errors import AlreadyConsumed, BrokenEvidence, LabctlError, PacketBurnt, Problem, Refused
from labctl.host.marker_file import fill_marker, require_bytes, require_in_place
from labctl.host.storage import open_trusted_folder
from labctl.lanes import next_lane
from labctl.ledger import LedgerEvent, append_ledger, find_consumed
from labctl.marker_state import MarkerAbsent, MarkerEmpty, MarkerValid, read_marker_state
from labctl.packet.model import Packet, PacketId
from labctl.packet.opening import open_packet
from labctl.packet.review import ReviewedPacket
from labctl.prereg.any_campaign import order_for
from labctl.records.marker import Marker, MarkerHost, PreflightPassed
from labctl.rundir import AuthorizationPaths, PacketPaths

RUN_SUFFIX_BYTES = 16
_NEXT = "freeze the next attempt with `labctl packet freeze CAMPAIGN --follows {}`"


@dataclass(frozen=True, slots=True)
class ConsumeRequest:
    """Who consumes a packet, where, and for which run."""

    authorization: AuthorizationPaths
    """The authorization root."""
    trusted_anchor: Path
    """The folder from which on nobody else may be able to write."""
    run_dir: str
    """The run's folder name, from `new_run_name`."""
    nonce: str
    """128 random bits in hex."""
    host: MarkerHost
    """This process on this machine."""
    clock: Clock
    """The clock that labels the marker."""


@dataclass(frozen=True, slots=True)
class ConsumedPacket:
    """A packet that is spent, by us or by an earlier run; made only in this module."""

    packet: Packet
    packet_id: PacketId
    folder: PacketPaths
    marker: Marker
    marker_bytes: bytes
    marker_sha256: str
    authorization: AuthorizationPaths

    @property
    def order(self) -> tuple[str, ...]:
        """The legs in the order that the marker fixed: as registered, or the mirror that the sealed coin chose."""
        return self.marker.order


def new_run_name(packet: Packet) -> str:
    """A name for a run that no other run has: campaign, packet and 128 random bits."""
    return f"{packet.preregistration.id}-{packet.id[:12]}-{secrets.token_hex(RUN_SUFFIX_BYTES)}"


def consume_marker(reviewed: ReviewedPacket, preflight: PreflightPassed, request: ConsumeRequest) -> ConsumedPacket:
    """Spend a packet: once, ever.

    Raises:
        AlreadyConsumed: a marker or something else (CONSUMED_BY_UNKNOWN) is there, or the ledger knows the packet.
        Refused: the authorization root is unsafe (UNSAFE_ROOT), or no marker could be created (MARKER_WRITE).
        BrokenEvidence: the packet's files or the ledger are not what they must be.
        PacketBurnt: the marker was created but could not be completed or witnessed (MARKER_WRITE).
    """
    if preflight.packet_sha256 != reviewed.packet_id:
        message = "preflight passed for another packet"
        raise RuntimeError(message)
    packet = open_packet(reviewed.folder)
    if packet.id != reviewed.packet_id:
        message = "the reviewed packet lies in another folder"
        raise RuntimeError(message)
    folder = _open_markers(request)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # so that who comes second sees a whole marker; O_EXCL alone decides
        require_unspent(request.authorization, packet.id)
        marker = _marker(reviewed, preflight, request)  # under the lock, because it counts the attempts before it
        _publish(folder, marker, packet.preregistration.id, request)
    finally:
        with contextlib.suppress(OSError):  # open for reading, and synced before: closing it can lose nothing
            os.close(folder)
    return _consumed(packet, marker.canonical(), request.authorization)


def open_consumed_packet(authorization: AuthorizationPaths, packet_id: str) -> ConsumedPacket:
    """A packet that is spent, with its marker held against the ledger and its files against its id.

    Raises:
        BrokenEvidence: there is no sound marker, the ledger does not know it, or the packet's files changed.
    """
    where = str(authorization.marker(packet_id))
    state = read_marker_state(authorization, packet_id)
    if not isinstance(state, MarkerValid):
        raise BrokenEvidence(_conflict(where, "the marker of a consumed packet", repr(state)))
    line = find_consumed(authorization.ledger, packet_id)
    if line is None or line.digest != sha256_hex(state.data):
        raise BrokenEvidence(_conflict(where, "a marker that the ledger knows", repr(line)))
    return _consumed(open_packet(authorization.packet(packet_id)), state.data, authorization)


def require_still_consumed(consumed: ConsumedPacket) -> None:
    """Before each start: the marker still lies at its path, byte for byte, so the root was not swapped.

    Raises:
        BrokenEvidence: it does not (RECORD_CONFLICT).
    """
    state = read_marker_state(consumed.authorization, consumed.packet_id)
    if not isinstance(state, MarkerValid) or state.data != consumed.marker_bytes:
        where = str(consumed.authorization.marker(consumed.packet_id))
        raise BrokenEvidence(_conflict(where, "the marker of this run", "something else"))


def _marker(reviewed: ReviewedPacket, preflight: PreflightPassed, request: ConsumeRequest) -> Marker:
    packet = reviewed.packet
    return Marker(
        kind=packet.kind,
        packet_sha256=packet.id,
        prereg_sha256=packet.prereg_yaml_sha256,
        git_commit=packet.repository.commit,
        tree_dirhash=packet.repository.tree_dirhash,
        order=order_for(packet.preregistration, request.nonce),
        run_dir=request.run_dir,
        nonce=request.nonce,
        host=request.host,
        approvals=tuple(reviewed.approvals),
        file_systems=preflight.file_systems,
        rehearsal_seal_sha256=preflight.rehearsal_seal_sha256,
        lane=next_lane(packet, request.authorization, request.host.machine_id_sha256),
        wall_ns=request.clock.realtime_ns(),
        mono_ns=request.clock.monotonic_ns(),
    )


def _consumed(packet: Packet, data: bytes, authorization: AuthorizationPaths) -> ConsumedPacket:
    marker = Marker.from_json(data, str(authorization.marker(packet.id)))
    folder = authorization.packet(packet.id)
    return ConsumedPacket(packet, packet.id, folder, marker, data, sha256_hex(data), authorization)


def _open_markers(request: ConsumeRequest) -> int:
    """The open markers folder, reached through no link from a root that only we can write to."""
    markers = request.authorization.markers
    if not os.path.lexists(markers):
        os.close(open_trusted_folder(request.authorization.root, request.trusted_anchor))
        with contextlib.suppress(Refused):  # another controller made it at the same moment
            make_folder(markers)
    return open_trusted_folder(markers, request.trusted_anchor)


def require_unspent(authorization: AuthorizationPaths, packet_id: str) -> None:
    """Refuse a packet that a marker, anything at a marker's path, or the ledger says is spent.

    Raises:
        AlreadyConsumed: it is (CONSUMED, CONSUMED_BY_UNKNOWN).
        BrokenEvidence: the ledger is broken (LEDGER_BROKEN).
    """
    where = str(authorization.marker(packet_id))
    state = read_marker_state(authorization, packet_id)
    if isinstance(state, MarkerValid):
        got = f"a marker for run {state.marker.run_dir}"
        raise AlreadyConsumed(Problem(Code.CONSUMED, where, "an unspent packet", got, _NEXT.format(packet_id)))
    if not isinstance(state, MarkerAbsent):
        raise _by_unknown(where, "an empty file" if isinstance(state, MarkerEmpty) else state.what, packet_id)
    line = find_consumed(authorization.ledger, packet_id)
    if line is not None:
        got = f"line {line.seq} of the ledger for run {line.run_dir}, its marker gone"
        raise AlreadyConsumed(
            Problem(Code.CONSUMED, str(authorization.ledger), "an unspent packet", got, _NEXT.format(packet_id))
        )


def _burnt(path: Path, expected: str, got: str) -> Problem:
    return Problem(Code.MARKER_WRITE, str(path), expected, got, f"the packet is spent; {_NEXT.format(path.stem)}")


def _conflict(where: str, expected: str, got: str) -> Problem:
    return Problem(Code.RECORD_CONFLICT, where, expected, got, "find out who touched the authorization root")


def _by_unknown(where: str, what: str, packet_id: str) -> AlreadyConsumed:
    return AlreadyConsumed(Problem(Code.CONSUMED_BY_UNKNOWN, where, "an unspent packet", what, _NEXT.format(packet_id)))


def _publish(folder: int, marker: Marker, campaign: str, request: ConsumeRequest) -> None:
    """The only legal order: create, mode, write, fsync, read back, fsync the folder, ledger line."""
    path = request.authorization.marker(marker.packet_sha256)
    data = marker.canonical()
    lane = None if marker.lane is None else marker.lane.key.sha256
    said = (campaign, marker.run_dir, sha256_hex(data), marker.wall_ns, lane)
    event = LedgerEvent("consumed", marker.packet_sha256, *said)
    descriptor = _create(folder, path, request.authorization, marker.packet_sha256)
    try:
        fill_marker(descriptor, data)
        require_bytes(folder, path, data)
        os.fsync(folder)
        require_in_place(folder, path.parent)
        append_ledger(request.authorization.ledger, event)
    except (OSError, LabctlError) as error:
        raise PacketBurnt(_burnt(path, "a marker on disk and in the ledger", str(error))) from error


def _create(folder: int, path: Path, authorization: AuthorizationPaths, packet_id: str) -> int:
    try:
        return open_once(Path(path.name), folder=folder)
    except Refused:
        require_unspent(authorization, packet_id)
        raise _by_unknown(str(path), "something that came and went", packet_id) from None
    except BrokenEvidence as error:
        problem = error.problems[0]
        if os.path.lexists(path):
            raise PacketBurnt(_burnt(path, "a new marker", problem.got)) from error
        do = "look at the disk; the packet is not spent"
        raise Refused(replace(problem, code=Code.MARKER_WRITE, expected="a new marker", do=do)) from error
