"""File one person's approval of a packet."""

from pathlib import Path

from labctl.clock import Clock
from labctl.durable import make_folders, write_once
from labctl.packet.approval import ApprovalRequest, make_approval, unsigned_key
from labctl.packet.opening import open_packet
from labctl.packet.review import SIGNATURE_SUFFIX
from labctl.packet.review_count import SECOND_NS, refuse_reviewer, repeated
from labctl.rundir import PacketPaths
from labctl.signature import Namespace, public_key_sha256, sign_bytes

KEY_DIGITS = 12


def file_approval(folder: PacketPaths, request: ApprovalRequest, clock: Clock) -> Path:
    """Write, and where a key is given sign, one person's approval of a packet.

    Raises:
        MissingReview: this person cannot review, or has done so (REVIEWER_EXCLUDED, REVIEW_DUPLICATE).
        Refused: the key does not sign (SIGNATURE_INVALID).
    """
    packet = open_packet(folder)
    refuse_reviewer(packet, request)
    key = public_key_sha256(request.key) if request.key else unsigned_key(request.reviewer)
    path = folder.approvals / f"{key[:KEY_DIGITS]}.json"
    if path.exists():
        raise repeated(str(path), request.reviewer)
    data = make_approval(packet, request, clock.realtime_ns() // SECOND_NS).canonical()
    signature = sign_bytes(data, request.key, Namespace.REVIEW) if request.key else None
    make_folders(folder.approvals)
    if signature is not None:
        write_once(path.with_name(path.name + SIGNATURE_SUFFIX), signature)
    write_once(path, data)
    return path
