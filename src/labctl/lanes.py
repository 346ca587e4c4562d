"""The lane ledger: which consumed packets were attempts at the same thing, read from the ledger and not from names."""

from dataclasses import dataclass

from labctl.durable import read_regular
from labctl.errors import LabctlError
from labctl.ledger import read_ledger
from labctl.packet.lane import lane_key
from labctl.packet.model import Packet
from labctl.packet.opening import LIMIT_BYTES, read_packet
from labctl.records.lane import Lane
from labctl.records.marker import LedgerLine
from labctl.rundir import AuthorizationPaths

ANY_LANE = "any"


@dataclass(frozen=True, slots=True)
class Consumption:
    """One consumed packet and the id of its lane: None for what is no attempt, `any` for what nobody can tell."""

    line: LedgerLine
    lane: str | None


def consumptions(authorization: AuthorizationPaths, machine_id_sha256: str) -> tuple[Consumption, ...]:
    """Every consumption of an authorization root, with its lane.

    Raises:
        BrokenEvidence: the ledger is broken (LEDGER_BROKEN).
    """
    consumed = [line for line in read_ledger(authorization.ledger) if line.event == "consumed"]
    return tuple(Consumption(line, _lane_of(line, authorization, machine_id_sha256)) for line in consumed)


def next_lane(packet: Packet, authorization: AuthorizationPaths, machine_id_sha256: str) -> Lane | None:
    """The lane of a packet that is about to be consumed; the caller keeps every other consumer away meanwhile.

    Raises:
        BrokenEvidence: the ledger is broken (LEDGER_BROKEN).
    """
    key = lane_key(packet, machine_id_sha256)
    if key is None:
        return None
    earlier = [one for one in consumptions(authorization, machine_id_sha256) if one.lane in (key.sha256, ANY_LANE)]
    return Lane(key=key, attempt=len(earlier) + 1)


def read_consumed_packet(authorization: AuthorizationPaths, packet_id: str) -> Packet | None:
    """The packet behind a line of the ledger; None where its file is gone or is not what its id says."""
    path = authorization.packet(packet_id).packet
    try:
        packet = read_packet(read_regular(path, limit_bytes=LIMIT_BYTES), str(path))
    except LabctlError:
        return None
    return packet if packet.id == packet_id else None


def _lane_of(line: LedgerLine, authorization: AuthorizationPaths, machine_id_sha256: str) -> str | None:
    """As the line says it; lines from before lanes were kept say nothing, and their packets are asked."""
    if line.lane_sha256 is not None:
        return line.lane_sha256
    packet = read_consumed_packet(authorization, line.packet_sha256)
    if packet is None:
        return ANY_LANE
    key = lane_key(packet, machine_id_sha256)
    return None if key is None else key.sha256
