"""What is frozen of a component or a probe: its files, and labctl's own worker side, which a leg runs as a copy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from labctl.packet.contents import PinnedInput, Subject, patch_role, pin_file, registered_subject
from labctl.packet.exported import WORKER_ROLE, file_role, module_role
from labctl.packet.tool import PACKAGE_FOLDER
from labctl.prereg.card_files import AnyLoadedCampaign, LoadedCardCampaign

COMPONENT_FOLDER = PACKAGE_FOLDER / "component"


def subject_of(kind: Literal["real", "rehearsal"], campaign: AnyLoadedCampaign, snapshot: Path) -> Subject:
    """A campaign of any kind as it was registered.

    Raises:
        BrokenEvidence: a file cannot be read.
    """
    if isinstance(campaign, LoadedCardCampaign):
        return card_subject(kind, campaign, snapshot)
    return registered_subject(kind, campaign, snapshot)


def card_subject(kind: Literal["real", "rehearsal"], campaign: LoadedCardCampaign, snapshot: Path) -> Subject:
    """A component or a probe as it was registered.

    Raises:
        BrokenEvidence: a file of the snapshot, or of labctl's own, cannot be read.
    """
    loaded = campaign.preregistration
    inputs = [pin_file(role, path, snapshot) for role, path in _campaign_files(campaign)]
    inputs += component_inputs()
    pinned = tuple(sorted(inputs, key=lambda one: one.file.role))
    return Subject(kind, "registered", loaded.model, campaign.host.model, loaded.data, pinned)


def component_inputs() -> Iterator[PinnedInput]:
    """Every module of the worker side, as it lies in labctl's own folder.

    Raises:
        BrokenEvidence: one cannot be read.
    """
    for path in sorted(COMPONENT_FOLDER.glob("*.py")):
        yield pin_file(module_role(path.name), path, PACKAGE_FOLDER.parent)


def _campaign_files(campaign: LoadedCardCampaign) -> Iterator[tuple[str, Path]]:
    yield "host.yaml", campaign.host.path
    if campaign.worker is not None:
        yield WORKER_ROLE, campaign.worker
    if campaign.allowed_signers is not None:
        yield "allowed_signers", campaign.allowed_signers
    yield from ((file_role(path.name), path) for path in campaign.files)
    for index, patches in campaign.patches.items():
        yield from ((patch_role(index, path.name), path) for path in patches)
