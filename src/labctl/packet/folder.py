"""Write a frozen packet to disk: every file beside it first, `packet.json` last; without it a folder is no packet."""

from pathlib import Path

from labctl.codes import Code
from labctl.durable import make_folders, read_regular, write_once
from labctl.errors import FreezeRefused, Problem
from labctl.frozen import canonical_json
from labctl.packet.attempts import earlier_packets
from labctl.packet.contents import Subject
from labctl.packet.model import Packet
from labctl.packet.opening import LIMIT_BYTES, open_packet
from labctl.rundir import AuthorizationPaths


def write_packet(packet: Packet, subject: Subject, engine: bytes | None, authorization: AuthorizationPaths) -> None:
    """Write a packet's folder; one that a crash left half-written is completed.

    Raises:
        FreezeRefused: a file of another content has one of the names (PACKET_EXISTS).
        BrokenEvidence: the folder does not read back as the packet.
    """
    folder = authorization.packet(packet.id)
    make_folders(folder.inputs)
    make_folders(folder.approvals)
    files = {folder.prereg: subject.yaml}
    files |= {} if engine is None else {folder.engine: engine}
    files |= {folder.inputs / pinned.file.role: pinned.data for pinned in subject.inputs}
    for path, data in (*files.items(), (folder.packet, packet.canonical())):
        _write_or_compare(path, data)
    open_packet(folder)


def find_unspent_equal(packet: Packet, authorization: AuthorizationPaths) -> Packet | None:
    """An unspent packet of the same content; what host checks print may differ, because they print times."""
    for earlier in earlier_packets(authorization, packet.preregistration.id):
        if not earlier.is_spent and _essence(earlier.packet) == _essence(packet):
            return open_packet(authorization.packet(earlier.packet_id))
    return None


def _write_or_compare(path: Path, data: bytes) -> None:
    if not path.exists():
        write_once(path, data)
    elif read_regular(path, limit_bytes=LIMIT_BYTES) != data:
        do = "move the packet's folder away"
        raise FreezeRefused(Problem(Code.PACKET_EXISTS, str(path), "the bytes to be written", "other bytes", do))


def _essence(packet: Packet) -> bytes:
    document = packet.model_dump(mode="json")
    document["host_checks"] = [
        (check.name, check.command, check.exit_status, check.counts) for check in packet.host_checks
    ]
    return canonical_json(document)
