"""Records that synthetic runs of every kind have: the machine, the journal, and what stands beside the packet."""

from collections.abc import Iterable

from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from labctl.packet.model import Packet
from labctl.protocol import Event
from labctl.records.marker import Marker, PreflightPassed
from labctl.records.run import NOTHING_SHA256, HostIdentity, JournalEntry

MACHINE = "a" * 64
BOOT = "11111111-2222-3333-4444-555555555555"
WALL_NS = 1_800_000_000_000_000_000


def host_identity() -> HostIdentity:
    """What the machine is."""
    return HostIdentity(
        machine_id_sha256=MACHINE, boot_id=BOOT, hostname="host", kernel="Linux 6", architecture="x86_64",
        cpu_model="cpu", cpu_count=2, cpuinfo_sha256="b" * 64, memory_bytes=1 << 34, clocksource="tsc", governors=(),
        python="3.11.9", distributions=(),
    )  # fmt: skip


def journal_bytes(events: Iterable[tuple[Event, str | None]]) -> bytes:
    """A journal whose chain is sound."""
    lines: list[bytes] = []
    for number, (event, leg) in enumerate(events):
        prev = sha256_hex(lines[-1]) if lines else NOTHING_SHA256
        entry = JournalEntry(seq=number, prev=prev, event=event, leg=leg, detail="", wall_ns=WALL_NS, mono_ns=number)
        lines.append(entry.canonical())
    return b"".join(lines)


def head_files(packet: Packet, marker: Marker, yaml: bytes) -> dict[str, bytes]:
    """The files of packet, marker and host, by their paths below `data/`."""
    preflight = PreflightPassed(
        packet_sha256=packet.id, findings=(), file_systems=marker.file_systems, rehearsal_seal_sha256=None
    )
    return {
        "packet/packet.json": packet.canonical(),
        "packet/prereg.yaml": yaml,
        "packet/marker.copy.json": marker.canonical(),
        "host/identity.json": host_identity().canonical(),
        "host/preflight.json": preflight.canonical(),
        "host/env.json": canonical_json({"allowed": list(packet.environment_allowed)}),
    }
