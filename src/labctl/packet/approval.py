"""An approval: an in-toto statement by one person about one exact packet."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

import labctl
from labctl.digest import sha256_hex
from labctl.frozen import FrozenModel, Sha256
from labctl.packet.model import Packet
from labctl.prereg.field_types import Line

PREDICATE_TYPE: Literal["https://labctl.dev/review/v1"] = "https://labctl.dev/review/v1"
SCOPE = "preregistration, packet and analyzers"
DAY_S = 86_400
PACKET_SUBJECT, PREREG_SUBJECT = "packet.json", "prereg.yaml"
Reviewer = Annotated[str, StringConstraints(pattern=r"^[^<>\r\n]+ <[^<>@\s]+@[^<>@\s]+>$")]


class Digests(FrozenModel):
    """Digests of a subject: SHA-256, and no other that could match in its place."""

    sha256: Sha256
    """SHA-256 of the bytes."""


class Subject(FrozenModel):
    """One thing that an approval is about."""

    name: Line
    """`packet.json`, `prereg.yaml`, or `analyzer:NAME`."""
    digest: Digests
    """Its digest."""


class Review(FrozenModel):
    """What the reviewer says."""

    reviewer: Reviewer
    """`Name <mail@host>`."""
    decision: Literal["approve"]
    """An approval is the only thing that counts; no file is an objection."""
    scope: Line
    """What was looked at."""
    checks: tuple[Line, ...]
    """What the reviewer did, a line each."""
    created_unix_s: Annotated[int, Field(ge=0)]
    """When, in seconds since 1970 UTC; for labels."""
    expires_unix_s: Annotated[int, Field(ge=0)] | None
    """From when on the approval counts no longer; null: never."""
    labctl_version: Line
    """labctl's version at the time."""


class Approval(FrozenModel):
    """The statement whose exact bytes are signed."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    """The statement's form."""
    subject: Annotated[tuple[Subject, ...], Field(min_length=1)]
    """What it is about."""
    predicate_type: Literal["https://labctl.dev/review/v1"] = Field(alias="predicateType")
    """What kind of statement it is."""
    predicate: Review
    """What it says."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One person's approval."""

    reviewer: str
    """`Name <mail@host>`."""
    key: Path | None
    """The private key that signs, where the preregistration asks for signatures."""
    expires_days: int | None
    """Days until the approval counts no longer."""
    checks: tuple[str, ...]
    """What the reviewer did, a line each."""


def make_approval(packet: Packet, request: ApprovalRequest, now_unix_s: int) -> Approval:
    """The statement that one person approves one packet."""
    days = request.expires_days
    review = Review(
        reviewer=request.reviewer,
        decision="approve",
        scope=SCOPE,
        checks=request.checks,
        created_unix_s=now_unix_s,
        expires_unix_s=None if days is None else now_unix_s + days * DAY_S,
        labctl_version=labctl.__version__,
    )
    return Approval(
        _type="https://in-toto.io/Statement/v1",
        subject=approval_subjects(packet),
        predicateType=PREDICATE_TYPE,
        predicate=review,
    )


def approval_subjects(packet: Packet) -> tuple[Subject, ...]:
    """What every approval of a packet is about: the packet, the YAML file, and the analyzers that will judge."""
    named = [(PACKET_SUBJECT, packet.id), (PREREG_SUBJECT, packet.prereg_yaml_sha256)]
    named += [(f"analyzer:{analyzer.name}", analyzer.sha256) for analyzer in packet.analyzers]
    return tuple(Subject(name=name, digest=Digests(sha256=digest)) for name, digest in named)


def mail_of(person: str) -> str:
    """The mail address of `Name <mail@host>`, in lower case."""
    found = re.search(r"<([^<>]+)>\Z", person)
    return (found[1] if found else person).lower()


def unsigned_key(person: str) -> str:
    """What stands for the raw key of a person who does not sign."""
    return sha256_hex(mail_of(person).encode())
