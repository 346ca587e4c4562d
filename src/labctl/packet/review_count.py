"""Which approvals of a packet count: bound to it, in time, by people who may review, each person and key once."""

from collections.abc import Iterable
from dataclasses import dataclass

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import LabctlError, MissingReview, Problem
from labctl.packet.approval import Approval, ApprovalRequest, approval_subjects, mail_of
from labctl.packet.model import Packet
from labctl.prereg.model import CampaignClass, Signatures
from labctl.signature import Namespace, verify_signature

SECOND_NS = 1_000_000_000
_ANEW = "approve again with `labctl review approve`"


@dataclass(frozen=True, slots=True)
class FiledApproval:
    """An approval as it lies in the packet's folder."""

    name: str
    data: bytes
    signature: bytes | None


@dataclass(frozen=True, slots=True)
class Policy:
    """What approvals of one packet are held against, at one moment."""

    packet: Packet
    allowed_signers: bytes | None
    now_ns: int


@dataclass(frozen=True, slots=True)
class _Voice:
    """Who an approval comes from: every name of the person, and the raw key where there is one."""

    people: frozenset[str]
    key_sha256: str | None


def count_approvals(filed: tuple[FiledApproval, ...], policy: Policy) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The digests of the approvals that count, and why each of the others does not."""
    voices, problems = _hear(filed, policy)
    return tuple(voices), problems


def refuse_approval(new: FiledApproval, filed: tuple[FiledApproval, ...], policy: Policy) -> None:
    """Refuse a new approval that would not count beside those that are filed already.

    Raises:
        LabctlError: why it would not count, exactly as counting says it.
    """
    voices, _ = _hear(filed, policy)
    _refuse_repetition(new.name, _judge(new, policy), voices.values())


def excluded_people(packet: Packet) -> frozenset[str]:
    """The mail addresses that cannot review: the author's, and everybody's who committed what was frozen."""
    committers = (mail.lower() for mail in packet.repository.committers)
    return frozenset({mail_of(packet.preregistration.author), *committers})


def refuse_reviewer(packet: Packet, request: ApprovalRequest) -> None:
    """Refuse, before anything is signed, an approval that could never count.

    Raises:
        MissingReview: the person cannot review (REVIEWER_EXCLUDED), or does not sign (SIGNATURE_INVALID).
    """
    if mail_of(request.reviewer) in excluded_people(packet):
        raise _excluded(request.reviewer, mail_of(request.reviewer))
    if packet.preregistration.reviews.signatures is Signatures.SSH and request.key is None:
        raise _unsigned(request.reviewer, "an OpenSSH signature")


def _hear(filed: tuple[FiledApproval, ...], policy: Policy) -> tuple[dict[str, _Voice], tuple[Problem, ...]]:
    voices: dict[str, _Voice] = {}
    problems: list[Problem] = []
    for approval in filed:
        try:
            voice = _judge(approval, policy)
            _refuse_repetition(approval.name, voice, voices.values())
        except LabctlError as error:
            problems += error.problems
            continue
        voices[sha256_hex(approval.data)] = voice
    return voices, tuple(problems)


def _judge(filed: FiledApproval, policy: Policy) -> _Voice:
    approval = Approval.from_json(filed.data, filed.name)
    problems = [*_foreign(filed.name, approval, policy.packet), *_expired(filed.name, approval, policy.now_ns)]
    if problems:
        raise MissingReview(problems)
    voice = _voice(filed, approval, policy)
    if excluded := voice.people & excluded_people(policy.packet):
        raise _excluded(filed.name, ", ".join(sorted(excluded)))
    return voice


def _voice(filed: FiledApproval, approval: Approval, policy: Policy) -> _Voice:
    mail = mail_of(approval.predicate.reviewer)
    if policy.packet.preregistration.reviews.signatures is Signatures.NONE:
        return _unsigned_voice(filed.name, mail, policy.packet)
    if filed.signature is None or policy.allowed_signers is None:
        raise _unsigned(filed.name, "an OpenSSH signature")
    verified = verify_signature(filed.data, filed.signature, policy.allowed_signers, Namespace.REVIEW, filed.name)
    if mail not in verified.principals:
        got = f"the key of {', '.join(verified.principals)}"
        raise MissingReview(Problem(Code.SIGNATURE_INVALID, filed.name, f"the key of {mail}", got, _ANEW))
    return _Voice(frozenset({*verified.principals, mail}), verified.key_sha256)


def _unsigned_voice(name: str, mail: str, packet: Packet) -> _Voice:
    if packet.preregistration.campaign_class is not CampaignClass.EXPLORATORY:
        raise _unsigned(name, f"a signature, for class {packet.preregistration.campaign_class}")
    return _Voice(frozenset({mail}), None)


def _excluded(where: str, people: str) -> MissingReview:
    expected, do = "a reviewer who neither wrote nor committed it", "ask somebody else to review"
    return MissingReview(Problem(Code.REVIEWER_EXCLUDED, where, expected, people, do))


def _unsigned(name: str, expected: str) -> MissingReview:
    return MissingReview(Problem(Code.SIGNATURE_INVALID, name, expected, "none", "approve again with --key"))


def _foreign(name: str, approval: Approval, packet: Packet) -> list[Problem]:
    if approval.subject == approval_subjects(packet):
        return []
    said = ", ".join(f"{subject.name} {subject.digest.sha256[:12]}" for subject in approval.subject)
    return [Problem(Code.REVIEW_FOREIGN, name, f"an approval of packet {packet.id}", said, _ANEW)]


def _expired(name: str, approval: Approval, now_ns: int) -> list[Problem]:
    expires = approval.predicate.expires_unix_s
    if expires is None or now_ns < expires * SECOND_NS:
        return []
    got = f"one that expired {now_ns // SECOND_NS - expires} s ago"
    return [Problem(Code.REVIEW_EXPIRED, name, "an approval in force", got, _ANEW)]


def _refuse_repetition(name: str, voice: _Voice, voices: Iterable[_Voice]) -> None:
    expected, do = "one approval by each person and key", "ask somebody else to review"
    for earlier in voices:
        if voice.people & earlier.people or (voice.key_sha256 and voice.key_sha256 == earlier.key_sha256):
            got = f"another by {', '.join(sorted(voice.people))}"
            raise MissingReview(Problem(Code.REVIEW_DUPLICATE, name, expected, got, do))
