"""A packet whose pinned worker side has a fault: frozen as any other, with other bytes in one of labctl's own modules.

`freeze_spoiled(repository, "probe.py", appended)` is what a release of labctl with that fault would freeze. Everything
after it (consume, run, seal, judge) is the real thing, because legs run the packet's own copies.
"""

from dataclasses import replace

from labctl.digest import sha256_hex
from labctl.packet.attempts import choose_attempt
from labctl.packet.card_contents import subject_of
from labctl.packet.contents import PinnedInput
from labctl.packet.exported import module_role
from labctl.packet.freeze import be_silent, freeze_subject
from labctl.packet.ground import campaign_in, exported, locate_campaign
from labctl.packet.machine import authorization_root
from tests.fakes.campaign_repository import CampaignRepository


def freeze_spoiled(repository: CampaignRepository, module: str, appended: str) -> str:
    """Freeze the campaign with code appended to one module of the worker side; the packet's id."""
    top, campaign = locate_campaign(repository.campaign)
    authorization = authorization_root(campaign.host.model, top)
    attempt = choose_attempt(authorization, campaign.preregistration.model.id, None)
    with exported(top, campaign, be_silent) as ground:
        subject = subject_of("real", campaign_in(ground), ground.snapshot)
        role = module_role(module)
        inputs = tuple(_spoiled(one, appended) if one.file.role == role else one for one in subject.inputs)
        assert inputs != subject.inputs
        return freeze_subject(replace(subject, inputs=inputs), ground, (authorization, attempt), be_silent).id


def _spoiled(pinned: PinnedInput, appended: str) -> PinnedInput:
    data = pinned.data + appended.encode()
    file = pinned.file.model_copy(update={"sha256": sha256_hex(data), "bytes": len(data)})
    return PinnedInput(file, data)
