"""File one person's approval of a packet."""

from itertools import count
from pathlib import Path

from labctl.clock import Clock
from labctl.durable import make_folders, write_once
from labctl.packet.approval import ApprovalRequest, make_approval, unsigned_key
from labctl.packet.opening import open_packet
from labctl.packet.review import SIGNATURE_SUFFIX, filed_approvals, review_policy
from labctl.packet.review_count import SECOND_NS, FiledApproval, refuse_approval, refuse_reviewer
from labctl.rundir import PacketPaths
from labctl.signature import Namespace, public_key_sha256, sign_bytes

KEY_DIGITS = 12


def file_approval(folder: PacketPaths, request: ApprovalRequest, clock: Clock) -> Path:
    """Write, and where a key is given sign, one person's approval of a packet, if it will count.

    Raises:
        MissingReview: this person or key cannot review, or has done so (REVIEWER_EXCLUDED, REVIEW_DUPLICATE).
        Refused: the key does not sign, or is not the person's (SIGNATURE_INVALID).
    """
    packet = open_packet(folder)
    refuse_reviewer(packet, request)
    key = public_key_sha256(request.key) if request.key else unsigned_key(request.reviewer)
    data = make_approval(packet, request, clock.realtime_ns() // SECOND_NS).canonical()
    signature = sign_bytes(data, request.key, Namespace.REVIEW) if request.key else None
    new = FiledApproval(request.reviewer, data, signature)
    refuse_approval(new, filed_approvals(folder), review_policy(packet, folder, clock))
    return _write(folder.approvals, key, new)


def _write(approvals: Path, key: str, new: FiledApproval) -> Path:
    make_folders(approvals)
    path = _free(approvals, key[:KEY_DIGITS])
    if new.signature is not None:
        write_once(_signature(path), new.signature)
    write_once(path, new.data)
    return path


def _free(approvals: Path, name: str) -> Path:
    # What lies under the key's own name and does not count (expired, spoilt, half-filed) stays, and is in nobody's way.
    names = (approvals / (f"{name}.json" if number == 1 else f"{name}-{number}.json") for number in count(1))
    return next(path for path in names if not path.exists() and not _signature(path).exists())


def _signature(path: Path) -> Path:
    return path.with_name(path.name + SIGNATURE_SUFFIX)
