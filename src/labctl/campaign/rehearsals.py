"""Find the rehearsal that a record campaign must have had: the same campaign and service, sealed and completed."""

from pathlib import Path

from labctl.campaign.lookup import frozen_packets
from labctl.campaign.roots import Roots
from labctl.campaign.status import PacketState, packet_status
from labctl.packet.model import Packet
from labctl.seal.verify import open_sealed_run


def find_rehearsal(packet: Packet, repository: Path) -> str | None:
    """The seal digest of a completed rehearsal of what this packet runs, or None.

    A rehearsal counts when it ran the registered service and its packet differs from this one in nothing that a run can
    see: the same preregistration, files, sources, models, interpreter, engine and labctl.
    """
    if packet.kind == "rehearsal":
        return None
    for frozen in reversed(frozen_packets((Roots.of_rehearsals(packet.host, repository),))):
        if _what_runs(frozen.packet) != _what_runs(packet) or frozen.packet.service != "registered":
            continue
        status = packet_status(frozen)
        if status.state is PacketState.SEALED_COMPLETED and status.run is not None:
            return open_sealed_run(status.run).seal_sha256
    return None


def _what_runs(packet: Packet) -> tuple[object, ...]:
    return (
        packet.prereg_yaml_sha256,
        packet.files,
        packet.sources,
        packet.models,
        packet.binaries,
        packet.interpreter,
        packet.engine_sha256,
        packet.tool,
    )
