"""Freeze for a rehearsal: the work tree as it is, no reviews, and an authorization root of its own."""

from dataclasses import replace
from enum import StrEnum

from labctl.packet.attempts import next_attempt
from labctl.packet.card_contents import subject_of
from labctl.packet.contents import EndpointSubject
from labctl.packet.embedded import embedded_host, embedded_preregistration
from labctl.packet.freeze import FreezeRequest, freeze_subject
from labctl.packet.ground import campaign_in, copied, locate_campaign
from labctl.packet.machine import rehearsal_authorization_root
from labctl.packet.model import Packet


class RehearsalTarget(StrEnum):
    """What a rehearsal runs."""

    EMBEDDED = "embedded"
    REGISTERED = "registered"


def freeze_rehearsal(request: FreezeRequest, service: RehearsalTarget) -> Packet:
    """Freeze a campaign for a rehearsal; what it follows is the last rehearsal, without being named.

    A component or a probe has no stand-in: its rehearsal runs its own worker on its own cards, whatever the target.

    Raises:
        Refused: the campaign, a source, a model, the interpreter or a host check is not as declared.
    """
    repository, campaign = locate_campaign(request.campaign)
    authorization = rehearsal_authorization_root(campaign.host.model, repository)
    attempt = next_attempt(authorization, campaign.preregistration.model.id)
    with copied(repository, campaign, request.progress) as ground:
        subject = subject_of("rehearsal", campaign_in(ground), ground.snapshot)
        if service is RehearsalTarget.EMBEDDED and isinstance(subject, EndpointSubject):
            subject = embedded_subject(subject)
        return freeze_subject(subject, ground, (authorization, attempt), request.progress)


def embedded_subject(registered: EndpointSubject) -> EndpointSubject:
    """The subject with the embedded endpoint in place of the registered service."""
    host, interpreter = embedded_host(registered.host)
    said = embedded_preregistration(registered.preregistration, interpreter)
    kept = tuple(pinned for pinned in registered.inputs if pinned.file.role in ("host.yaml", "suite.yaml"))
    return replace(registered, service="embedded", preregistration=said, host=host, inputs=kept)
