"""Step 2, freeze: from a clean commit to a packet whose id covers everything that decides the run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labctl.packet.assemble import freeze_subject
from labctl.packet.attempts import choose_attempt
from labctl.packet.contents import registered_subject
from labctl.packet.ground import campaign_in, exported, locate_campaign
from labctl.packet.machine import authorization_root
from labctl.packet.model import Packet


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
        subject = registered_subject("real", campaign_in(ground), ground.snapshot)
        return freeze_subject(subject, ground, (authorization, attempt), request.progress)
