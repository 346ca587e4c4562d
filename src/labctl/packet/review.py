"""Step 3, review: approvals of one exact packet are counted and turned into leave to consume it."""

from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import read_regular
from labctl.errors import MissingReview, Problem
from labctl.packet.model import Packet, PacketId
from labctl.packet.opening import open_packet
from labctl.packet.review_count import FiledApproval, Policy, count_approvals
from labctl.rundir import PacketPaths

LIMIT_BYTES = 1 << 20
SIGNATURE_SUFFIX = ".sig"


@dataclass(frozen=True, slots=True)
class ReviewedPacket:
    """A packet that enough people have approved; only `require_reviews` makes one."""

    packet: Packet
    packet_id: PacketId
    folder: PacketPaths
    approvals: tuple[str, ...]
    """Digests of the approvals that were counted."""


def require_reviews(folder: PacketPaths, clock: Clock) -> ReviewedPacket:
    """Hold the filed approvals against what the packet demands; a rehearsal's packet demands none.

    Raises:
        MissingReview: too few count; with why each of the others does not.
        BrokenEvidence: the packet is not what was frozen.
    """
    packet = open_packet(folder)
    if packet.kind == "rehearsal":
        return ReviewedPacket(packet, packet.id, folder, ())
    counted, problems = judge_reviews(packet, folder, clock)
    required = packet.preregistration.reviews.required
    if len(counted) < required:
        got = f"{len(counted)} that count"
        do = f"ask reviewers to run `labctl review request {packet.id}`"
        missing = Problem(Code.REVIEW_MISSING, f"packet {packet.id}", f"{required} approvals", got, do)
        raise MissingReview((missing, *problems))
    return ReviewedPacket(packet, packet.id, folder, counted)


def judge_reviews(packet: Packet, folder: PacketPaths, clock: Clock) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The digests of the filed approvals that count now, and why each of the others does not."""
    return count_approvals(filed_approvals(folder), review_policy(packet, folder, clock))


def review_policy(packet: Packet, folder: PacketPaths, clock: Clock) -> Policy:
    """What the packet's approvals are held against now; who may sign is what the packet says."""
    signers = folder.inputs / "allowed_signers"
    allowed = read_regular(signers, limit_bytes=LIMIT_BYTES) if packet.file("allowed_signers") else None
    return Policy(packet, allowed, clock.realtime_ns())


def filed_approvals(folder: PacketPaths) -> tuple[FiledApproval, ...]:
    """Every approval in a packet's folder, by name."""
    files = sorted(folder.approvals.glob("*.json")) if folder.approvals.is_dir() else []
    return tuple(FiledApproval(file.name, _read(file), _signature(file)) for file in files)


def _signature(file: Path) -> bytes | None:
    signature = file.with_name(file.name + SIGNATURE_SUFFIX)
    return _read(signature) if signature.exists() else None


def _read(file: Path) -> bytes:
    return read_regular(file, limit_bytes=LIMIT_BYTES)
