"""Which attempt a packet is: a spent packet of the same campaign is followed by name, and never silently."""

from dataclasses import dataclass

from labctl.codes import Code
from labctl.durable import read_regular
from labctl.errors import FreezeRefused, ManifestMismatch, Problem
from labctl.packet.model import Packet
from labctl.packet.opening import LIMIT_BYTES, read_packet
from labctl.rundir import AuthorizationPaths

MIN_PREFIX = 12


@dataclass(frozen=True, slots=True)
class EarlierPacket:
    """A packet that was frozen before, and whether its marker exists."""

    packet: Packet
    packet_id: str
    is_spent: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """The place of a packet in its campaign."""

    number: int
    follows: str | None


def earlier_packets(authorization: AuthorizationPaths, campaign: str) -> tuple[EarlierPacket, ...]:
    """Every packet of a campaign, by attempt and id.

    Raises:
        BrokenEvidence: a packet's file is malformed, or is not what its folder's name says.
    """
    folders = sorted(authorization.packets.iterdir()) if authorization.packets.is_dir() else []
    found = [
        _read(authorization, folder.name) for folder in folders if authorization.packet(folder.name).packet.exists()
    ]
    of_campaign = [earlier for earlier in found if earlier.packet.preregistration.id == campaign]
    return tuple(sorted(of_campaign, key=lambda earlier: (earlier.packet.attempt, earlier.packet_id)))


def choose_attempt(authorization: AuthorizationPaths, campaign: str, follows: str | None) -> Attempt:
    """The next attempt of a campaign, given the packet that the operator says it follows.

    Raises:
        FreezeRefused: a spent packet is not named, or another than the last spent one is (SPENT_BEFORE).
    """
    spent = _last_spent(authorization, campaign)
    if spent is None:
        if follows is None:
            return Attempt(1, None)
        do = "freeze without --follows"
        raise _refused(campaign, "no packet to follow, because none is spent", f"--follows {follows}", do)
    if follows is None:
        do = f"look at what became of it, then freeze again with `--follows {spent.packet_id}`"
        got = f"packet {spent.packet_id} (attempt {spent.packet.attempt}), which is spent"
        raise _refused(campaign, "no spent packet, or its name", got, do)
    if len(follows) < MIN_PREFIX or not spent.packet_id.startswith(follows):
        raise _refused(campaign, f"--follows {spent.packet_id}, the last spent packet", follows, "name that one")
    return Attempt(spent.packet.attempt + 1, spent.packet_id)


def next_attempt(authorization: AuthorizationPaths, campaign: str) -> Attempt:
    """The next attempt of a rehearsal, which may follow any other."""
    spent = _last_spent(authorization, campaign)
    return Attempt(1, None) if spent is None else Attempt(spent.packet.attempt + 1, spent.packet_id)


def refuse_overtaken(packet: Packet, authorization: AuthorizationPaths) -> None:
    """Refuse a packet that was frozen before another packet of its campaign was spent.

    Raises:
        FreezeRefused: the last spent packet is not the one that this packet follows (SPENT_BEFORE).
    """
    spent = _last_spent(authorization, packet.preregistration.id)
    if spent is not None and spent.packet_id not in (packet.follows, packet.id):
        do = f"freeze again with `--follows {spent.packet_id}`"
        got = f"one that follows {packet.follows or 'none'}"
        raise _refused(f"packet {packet.id}", f"a packet that follows {spent.packet_id}, which is spent", got, do)


def _last_spent(authorization: AuthorizationPaths, campaign: str) -> EarlierPacket | None:
    spent = [earlier for earlier in earlier_packets(authorization, campaign) if earlier.is_spent]
    return spent[-1] if spent else None


def _read(authorization: AuthorizationPaths, packet_id: str) -> EarlierPacket:
    path = authorization.packet(packet_id).packet
    packet = read_packet(read_regular(path, limit_bytes=LIMIT_BYTES), str(path))
    if packet.id != packet_id:
        do = "restore the packet's folder from a copy"
        raise ManifestMismatch(Problem(Code.DIGEST_MISMATCH, str(path.parent), packet.id, packet_id, do))
    return EarlierPacket(packet, packet_id, _is_there(authorization, packet_id))


def _is_there(authorization: AuthorizationPaths, packet_id: str) -> bool:
    try:
        authorization.marker(packet_id).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _refused(where: str, expected: str, got: str, do: str) -> FreezeRefused:
    return FreezeRefused(Problem(Code.SPENT_BEFORE, where, expected, got, do))
