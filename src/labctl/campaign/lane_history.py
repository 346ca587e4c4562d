"""Lanes of this machine's ledgers, each with its attempts in the order in which they were consumed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from labctl.campaign.roots import Roots
from labctl.lanes import ANY_LANE, Consumption, consumptions, read_consumed_packet
from labctl.marker_state import MarkerValid, read_marker_state
from labctl.packet.lane import lane_alpha, lane_key, lucky_pass_chance
from labctl.packet.model import Packet
from labctl.prereg.model import Preregistration
from labctl.records.lane import LaneKey
from labctl.records.marker import LedgerLine


@dataclass(frozen=True, slots=True)
class LaneEntry:
    """One attempt; `packet` is None where it cannot be read."""

    attempt: int
    line: LedgerLine
    packet: Packet | None
    lucky_pass_chance: Fraction | None
    """The chance that one of the attempts up to this one has passed by luck, at this one's own error rate."""


@dataclass(frozen=True, slots=True)
class LaneHistory:
    """One lane of one authorization root."""

    sha256: str
    key: LaneKey | None
    """None where no packet of the lane can be read."""
    roots: Roots
    entries: tuple[LaneEntry, ...]


def lane_histories(every: Sequence[Roots], machine_id_sha256: str) -> Iterator[LaneHistory]:
    """Every lane of some authorization roots; what nobody can tell is an attempt in each lane of its root.

    Raises:
        BrokenEvidence: a ledger is broken (LEDGER_BROKEN).
    """
    for roots in every:
        found = consumptions(roots.authorization, machine_id_sha256)
        for lane in dict.fromkeys(one.lane for one in found if one.lane not in (None, ANY_LANE)):
            yield _history(str(lane), roots, [one for one in found if one.lane in (lane, ANY_LANE)])


def _history(lane: str, roots: Roots, found: Sequence[Consumption]) -> LaneHistory:
    packets = [read_consumed_packet(roots.authorization, one.line.packet_sha256) for one in found]
    entries = tuple(
        LaneEntry(attempt, one.line, packet, _luck(packet, attempt))
        for attempt, (one, packet) in enumerate(zip(found, packets, strict=True), start=1)
    )
    return LaneHistory(lane, _key(lane, roots, packets), roots, entries)


def _key(lane: str, roots: Roots, packets: Sequence[Packet | None]) -> LaneKey | None:
    """The lane's key, from the first packet that has this very lane on the machine that its marker names."""
    for packet in packets:
        state = None if packet is None else read_marker_state(roots.authorization, packet.id)
        if packet is not None and isinstance(state, MarkerValid):
            key = lane_key(packet, state.marker.host.machine_id_sha256)
            if key is not None and key.sha256 == lane:
                return key
    return None


def _luck(packet: Packet | None, attempt: int) -> Fraction | None:
    if packet is None or not isinstance(packet.preregistration, Preregistration):
        return None
    return lucky_pass_chance(lane_alpha(packet.preregistration), attempt)
