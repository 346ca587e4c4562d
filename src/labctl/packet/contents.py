"""What is frozen: a preregistration and the small files that it names, read from the snapshot and nowhere else."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.packet.model import CampaignRepository, PinnedFile
from labctl.prereg.any_campaign import AnyPreregistration
from labctl.prereg.campaign_files import LoadedCampaign
from labctl.prereg.gate_kinds import CleanLog, gate_id
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.treatment_kinds import BinariesTreatment

INPUT_LIMIT_BYTES = 64 << 20
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a campaign's files come from while it is frozen."""

    repository: Path
    """The top of the campaign repository; machine paths start here."""
    snapshot: Path
    """The exported files; campaign files are read here and nowhere else."""
    facts: CampaignRepository
    """What the packet says of the repository."""


@dataclass(frozen=True, slots=True)
class PinnedInput:
    """One small file of the campaign, with the bytes that were pinned."""

    file: PinnedFile
    data: bytes


@dataclass(frozen=True, slots=True)
class Subject:
    """What is frozen: the preregistration as registered, or as derived for a rehearsal."""

    kind: Literal["real", "rehearsal"]
    service: Literal["registered", "embedded"]
    preregistration: AnyPreregistration
    host: HostProfile
    yaml: bytes
    inputs: tuple[PinnedInput, ...]

    def input(self, role: str) -> bytes:
        """The pinned bytes of a role; the loader has made sure that they are there."""
        return next(pinned.data for pinned in self.inputs if pinned.file.role == role)


@dataclass(frozen=True, slots=True)
class EndpointSubject(Subject):
    """What is frozen of a campaign that starts servers."""

    preregistration: Preregistration


def registered_subject(kind: Literal["real", "rehearsal"], campaign: LoadedCampaign, snapshot: Path) -> EndpointSubject:
    """A campaign as it was registered.

    Raises:
        BrokenEvidence: a file of the snapshot cannot be read.
    """
    loaded = campaign.preregistration
    inputs = tuple(pin_file(role, path, snapshot) for role, path in sorted(_input_paths(campaign)))
    return EndpointSubject(kind, "registered", loaded.model, campaign.host.model, loaded.data, inputs)


def manifest_role(model: str) -> str:
    """The role of a model's manifest."""
    return f"model-{model}.sha256"


def binaries_role(key: str) -> str:
    """The role of the manifest of a set of compiled files."""
    return f"binaries-{key}.sha256"


def good_log_role(gate: CleanLog) -> str:
    """The role of the log that a gate's patterns are held against."""
    return f"good-{gate_id(gate)}.log"


def patch_role(source: int, file: str) -> str:
    """The role of one patch of a source's series, by the source's place; the roles sort as the names do."""
    return f"patch-{source}-{file}"


def pin_file(role: str, path: Path, top: Path) -> PinnedInput:
    """One file below a folder, with its bytes.

    Raises:
        BrokenEvidence: it cannot be read.
    """
    data = read_regular(path, limit_bytes=INPUT_LIMIT_BYTES)
    shown = path.relative_to(top).as_posix()
    return PinnedInput(PinnedFile(role=role, path=shown, sha256=sha256_hex(data), bytes=len(data)), data)


def _input_paths(campaign: LoadedCampaign) -> Iterator[tuple[str, Path]]:
    said, root = campaign.preregistration.model, campaign.root
    yield "host.yaml", root / said.host
    yield "suite.yaml", root / said.workload.suite
    if campaign.oracle is not None:
        yield "oracle.json", campaign.oracle.path
    if campaign.allowed_signers is not None:
        yield "allowed_signers", campaign.allowed_signers
    if campaign.noise_record is not None:
        yield "noise.json", campaign.noise_record.path
    for model in said.models:
        yield manifest_role(model.name), root / model.manifest
    yield from _treatment_and_gate_paths(said, root)
    for index, patches in campaign.patches.items():
        yield from ((patch_role(index, path.name), path) for path in patches)


def _treatment_and_gate_paths(said: Preregistration, root: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(said.treatment, BinariesTreatment):
        yield from ((binaries_role(key), root / path) for key, path in said.treatment.manifests().items())
    for gate in said.gates:
        if isinstance(gate, CleanLog) and gate.good_log is not None:
            yield good_log_role(gate), root / gate.good_log
