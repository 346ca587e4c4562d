"""What a frozen packet is: everything that decides a run; its id is the digest of its own canonical bytes."""

from typing import Annotated, Literal, NewType

from pydantic import Discriminator, Field, StringConstraints

from labctl.digest import sha256_hex
from labctl.frozen import DecimalText, FrozenModel, GitCommit, SafeName, Sha256
from labctl.prereg.any_campaign import AnyPreregistration, registered_order
from labctl.prereg.field_types import EnvironmentName, Line, RelativePath
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration

PacketId = NewType("PacketId", str)
Count = Annotated[int, Field(ge=0)]
PinnedPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")]


def _is_absent(value: object) -> bool:
    return value is None


def _is_empty(value: object) -> bool:
    return not value


class PinnedFile(FrozenModel):
    """One small campaign file that the run reads; its bytes lie in the packet's `inputs/`."""

    role: SafeName
    """Its name in `inputs/`: `suite.yaml`, `oracle.json`, `model-NAME.sha256`, `allowed_signers`, `host.yaml`,
    `worker.py`, `component-NAME.py`, `file-NAME`."""
    path: PinnedPath
    """Where it stands in the campaign repository, or below labctl's own folder."""
    sha256: Sha256
    """Its digest."""
    bytes: Count
    """Its size."""


class CampaignRepository(FrozenModel):
    """The frozen commit that campaign files and host checks come from."""

    commit: GitCommit
    """The full object id."""
    tree_dirhash: Sha256
    """`dirHash` over the commit's blobs, by SHA-256 of their bytes."""
    files: Count
    """Blobs in the tree."""
    prereg_path: RelativePath
    """The preregistration, relative to the repository's top."""
    committers: tuple[str, ...]
    """Lower-case mail addresses behind the commit, and behind every commit of the preregistration; none can review."""


class FrozenGitSource(FrozenModel):
    """A source tree whose tracked bytes were re-hashed and found equal to its commit."""

    kind: Literal["git"]
    """The source's kind."""
    name: SafeName
    """The host profile's key."""
    commit: GitCommit
    """The full object id."""
    tree_dirhash: Sha256
    """`dirHash` over the commit's blobs."""
    files: Count
    """Blobs in the tree."""


class FrozenInstalledSource(FrozenModel):
    """An installed package whose files were re-hashed and found equal to its RECORD."""

    kind: Literal["installed"]
    """The source's kind."""
    name: SafeName
    """The distribution."""
    version: Line
    """Its version."""
    record_sha256: Sha256
    """Digest of its RECORD."""
    files_dirhash: Sha256
    """`dirHash` over every file that RECORD lists."""
    files: Count
    """Files that RECORD lists with a digest."""


FrozenSource = Annotated[FrozenGitSource | FrozenInstalledSource, Discriminator("kind")]


class FrozenModelFiles(FrozenModel):
    """A model whose files were hashed and found equal to its manifest."""

    name: SafeName
    """The host profile's key."""
    manifest_sha256: Sha256
    """Digest of the manifest's bytes."""
    files: Count
    """Files in the manifest."""
    bytes: Count
    """Their total size."""


class Interpreter(FrozenModel):
    """The Python that runs the servers."""

    key: SafeName
    """The host profile's key."""
    resolved_sha256: Sha256
    """Digest of the executable, links resolved."""
    version: Line
    """`major.minor.micro`."""
    distributions_sha256: Sha256
    """Digest of the sorted list `name==version` of installed distributions."""
    pth_files: tuple[str, ...]
    """Names of `.pth` files in its site-packages, sorted: code that isolation does not stop."""
    pth_sha256: tuple[Line, ...] | None = Field(default=None, exclude_if=_is_absent)
    """The same as `sha256sum` lines; null in packets of before this was pinned."""
    startup_sha256: tuple[Line, ...] | None = Field(default=None, exclude_if=_is_absent)
    """`sha256sum` lines of what else steers every start: `sitecustomize`, `usercustomize`, `pyvenv.cfg`."""
    records_sha256: Sha256 | None = Field(default=None, exclude_if=_is_absent)
    """Digest of a sorted line `name==version RECORD-digest` for each installed distribution."""


class Tool(FrozenModel):
    """labctl itself."""

    version: Line
    """Its version."""
    tree_dirhash: Sha256
    """`dirHash` over its files, but for compiled byte code in `__pycache__`."""


class PinnedAnalyzer(FrozenModel):
    """An analyzer that may judge the run."""

    name: SafeName
    """`labctl`, or the name of one that stands alone."""
    sha256: Sha256
    """Digest of its code."""


class HostCheckResult(FrozenModel):
    """What one host check did in the exported snapshot."""

    name: SafeName
    """Its name."""
    command: tuple[str, ...]
    """The argument list, as registered."""
    exit_status: int
    """Its exit status (0: a failing check refuses the freeze)."""
    counts: dict[SafeName, Count]
    """Counts found in its last lines, such as `passed`."""
    stdout_sha256: Sha256
    """Digest of its output."""
    stdout_bytes: Count
    """Size of its output."""
    stderr_sha256: Sha256
    """Digest of its error output."""
    stderr_bytes: Count
    """Size of its error output."""


class PlannedPower(FrozenModel):
    """What the campaign can see, computed from its noise record."""

    start_sd_percent: DecimalText
    """The SD between starts that was planned with, in percent: the upper 80 % limit of the record's."""
    starts: tuple[Count, Count]
    """Starts of the control and of the candidate."""
    power: DecimalText
    """The chance of detecting the planned effect."""
    minimum_effect_percent: DecimalText | None
    """The smallest effect that is detected with the wanted power; null: none, too few starts."""
    starts_needed: Count | None
    """Starts of each arm that detect the planned effect with the wanted power; null: no number does."""


class Packet(FrozenModel):
    """Everything that decides a run."""

    schema_id: Literal["labctl/packet/1"] = Field(default="labctl/packet/1", alias="schema")
    """The format of this document."""
    kind: Literal["real", "rehearsal"]
    """A rehearsal's packet says so, and nothing that follows from it can say otherwise."""
    service: Literal["registered", "embedded"]
    """`embedded`: a rehearsal that runs the embedded endpoint in place of the registered service."""
    attempt: Annotated[int, Field(ge=1)]
    """1 for the first packet of these files, then one more each time."""
    follows: Sha256 | None
    """The id of the packet that this one follows, or null."""
    preregistration: AnyPreregistration
    """The canonical form; analyzers read only this."""
    prereg_yaml_sha256: Sha256
    """Digest of the YAML file's exact bytes."""
    repository: CampaignRepository
    """The frozen commit."""
    files: tuple[PinnedFile, ...]
    """Every small file that the run reads."""
    sources: tuple[FrozenSource, ...]
    """Engine code, verified in place."""
    models: tuple[FrozenModelFiles, ...]
    """Model files, verified in place."""
    interpreter: Interpreter
    """What runs the servers."""
    tool: Tool
    """What runs the campaign."""
    analyzers: Annotated[tuple[PinnedAnalyzer, ...], Field(min_length=1)]
    """What judges the run; all must agree."""
    host: HostProfile
    """The host profile, whole."""
    engine_sha256: Sha256 | None
    """Digest of `engine.json`, the resolved vocabulary; null: the campaign starts no server, and has none."""
    host_checks: tuple[HostCheckResult, ...]
    """What freezing ran."""
    environment_allowed: tuple[EnvironmentName, ...]
    """Names that a server's environment may hold."""
    binaries: tuple[FrozenModelFiles, ...] = Field(default=(), exclude_if=_is_empty)
    """Sets of compiled files in which the arms differ, verified in place."""
    planned_power: PlannedPower | None = Field(default=None, exclude_if=_is_absent)
    """Power as freezing computed it; null where the campaign states none."""

    @property
    def id(self) -> PacketId:
        """The packet's id: SHA-256 of its canonical bytes, 64 hex digits."""
        return PacketId(sha256_hex(self.canonical()))

    @property
    def order(self) -> tuple[str, ...]:
        """The legs in the registered order; a sealed coin may choose its mirror as the packet is consumed."""
        return registered_order(self.preregistration)

    def file(self, role: str) -> PinnedFile | None:
        """The pinned file of a role, or None."""
        return next((pinned for pinned in self.files if pinned.role == role), None)


class EndpointPacket(Packet):
    """A packet of a campaign that starts servers."""

    preregistration: Preregistration
    """The canonical form; analyzers read only this."""
    engine_sha256: Sha256
    """Digest of `engine.json`, the resolved vocabulary."""


def endpoint_packet(packet: Packet) -> EndpointPacket:
    """The packet as one of a campaign that starts servers.

    Raises:
        RuntimeError: its campaign starts none; whoever asks should have looked at its kind.
    """
    if not isinstance(packet.preregistration, Preregistration):
        message = f"a {packet.preregistration.kind} where servers are started"
        raise RuntimeError(message)  # noqa: TRY004 (a call out of order, no wrong type)
    return EndpointPacket.from_json(packet.canonical(), "packet")
