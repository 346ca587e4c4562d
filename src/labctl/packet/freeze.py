"""Step 2, freeze: from a clean commit to a packet whose id covers everything that decides the run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labctl.digest import sha256_hex
from labctl.packet.attempts import Attempt, choose_attempt
from labctl.packet.card_contents import subject_of
from labctl.packet.contents import EndpointSubject, Ground, Progress, Subject
from labctl.packet.folder import find_unspent_equal, write_packet
from labctl.packet.ground import campaign_in, exported, locate_campaign
from labctl.packet.machine import authorization_root
from labctl.packet.model import Packet
from labctl.packet.planned_power import plan_power, refuse_underpowered
from labctl.packet.verified import VerifiedMachine, verify_machine
from labctl.rundir import AuthorizationPaths


def be_silent(_step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class FreezeRequest:
    """What is to be frozen."""

    campaign: Path
    """The campaign file, in a work tree that equals its commit."""
    follows: str | None = None
    """The spent packet that this one follows."""
    progress: Callable[[str], None] = be_silent
    """Told what happens now."""


def freeze_packet(request: FreezeRequest) -> Packet:
    """Freeze a campaign; an unspent packet of the same content is given back as it is.

    Raises:
        Refused: the campaign, its repository, a source, a model, the interpreter or a host check is not as declared.
    """
    repository, campaign = locate_campaign(request.campaign)
    authorization = authorization_root(campaign.host.model, repository)
    attempt = choose_attempt(authorization, campaign.preregistration.model.id, request.follows)
    with exported(repository, campaign, request.progress) as ground:
        subject = subject_of("real", campaign_in(ground), ground.snapshot)
        return freeze_subject(subject, ground, (authorization, attempt), request.progress)


def freeze_subject(
    subject: Subject, ground: Ground, place: tuple[AuthorizationPaths, Attempt], progress: Progress
) -> Packet:
    """Verify the machine, and write the packet unless an unspent one of the same content is there.

    Raises:
        Refused: something is not as declared.
    """
    authorization, attempt = place
    if isinstance(subject, EndpointSubject):
        refuse_underpowered(subject, plan_power(subject))
    verified = verify_machine(subject, ground, progress)
    packet = build_packet(subject, ground, verified, attempt)
    if equal := find_unspent_equal(packet, authorization):
        progress(f"this is packet {equal.id}, which was frozen before")
        return equal
    write_packet(packet, subject, verified.engine.engine_json, authorization)
    return packet


def build_packet(subject: Subject, ground: Ground, verified: VerifiedMachine, attempt: Attempt) -> Packet:
    """Put everything that was found into one packet."""
    engine = verified.engine
    return Packet(
        kind=subject.kind,
        service=subject.service,
        attempt=attempt.number,
        follows=attempt.follows,
        preregistration=subject.preregistration,
        prereg_yaml_sha256=sha256_hex(subject.yaml),
        repository=ground.facts,
        files=tuple(pinned.file for pinned in subject.inputs),
        sources=engine.sources,
        models=engine.models,
        interpreter=engine.interpreter,
        tool=verified.tool,
        analyzers=verified.analyzers,
        host=subject.host,
        engine_sha256=None if engine.engine_json is None else sha256_hex(engine.engine_json),
        host_checks=verified.host_checks,
        environment_allowed=verified.environment_allowed,
        binaries=engine.binaries,
        planned_power=plan_power(subject) if isinstance(subject, EndpointSubject) else None,
    )
