"""The seal statements of a run and of an analysis: in-toto Statement v1, as canonical JSON in `seal.json`."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from labctl.digest import sha256_hex
from labctl.frozen import FrozenModel, GitCommit, SafeName, Sha256, canonical_json
from labctl.records.run import AbortCause, OutcomeKind

STATEMENT_TYPE: Literal["https://in-toto.io/Statement/v1"] = "https://in-toto.io/Statement/v1"
RUN_SEAL_TYPE: Literal["https://labctl.dev/run-seal/v1"] = "https://labctl.dev/run-seal/v1"
ANALYSIS_SEAL_TYPE: Literal["https://labctl.dev/analysis/v1"] = "https://labctl.dev/analysis/v1"
NO_DIGEST = "0" * 64
Count = Annotated[int, Field(ge=0)]


class DigestSet(FrozenModel):
    """Digests of one thing; SHA-256 and no other algorithm."""

    sha256: Sha256
    """The digest."""


class Descriptor(FrozenModel):
    """One thing by its name and digest."""

    name: str
    """Its name."""
    digest: DigestSet
    """Its digest."""


class PacketDigests(FrozenModel):
    """The whole digest set of the packet, and the approvals that the marker counted."""

    packet_sha256: Sha256
    """The packet."""
    packet_kind: Literal["real", "rehearsal"]
    """Its kind."""
    prereg_sha256: Sha256
    """The preregistration's YAML bytes."""
    git_commit: GitCommit
    """The frozen commit of the campaign repository."""
    tree_dirhash: Sha256
    """Its content."""
    files: dict[SafeName, Sha256]
    """Small pinned files by role."""
    engine_sha256: Sha256 | None
    """The resolved engine vocabulary; null: the campaign starts no server."""
    interpreter_sha256: Sha256
    """The serving interpreter."""
    tool_dirhash: Sha256
    """labctl's own files."""
    analyzers: dict[SafeName, Sha256]
    """Analyzers that may judge the run."""
    approvals: tuple[Sha256, ...]
    """Reviews that were counted."""


class SealCounts(FrozenModel):
    """How much was sealed."""

    files: Count
    """Payload files."""
    bytes: Count
    """Their total size."""
    legs: Count
    """Leg folders."""


class SealPolicy(FrozenModel):
    """What sealing refused; a constant of this version."""

    symlinks: Literal[False] = False
    """No symbolic links."""
    hardlinks: Literal[False] = False
    """No second names."""
    charset: Literal["[A-Za-z0-9][A-Za-z0-9._-]*"] = "[A-Za-z0-9][A-Za-z0-9._-]*"
    """Each part of a path."""


class SealTool(FrozenModel):
    """What sealed the run."""

    version: str
    """labctl's version."""
    python: str
    """The interpreter's version."""
    platform: str
    """System, release and machine."""


class SealOutcome(FrozenModel):
    """How the run ended, as far as the seal is concerned."""

    outcome: OutcomeKind
    """As `outcome.json` says; `aborted` for every run that was not sealed by its own controller."""
    cause: AbortCause | None
    """Why, for an aborted run."""
    detail: tuple[str, ...]
    """One line each: those of `outcome.json`, then the sealer's own."""


class RunSealPredicate(FrozenModel):
    """What is said of the run."""

    outcome: SealOutcome
    """How it ended."""
    order: tuple[str, ...]
    """The legs in the order that the marker fixed."""
    external_parameters: PacketDigests = Field(alias="externalParameters")
    """The packet."""
    resolved_dependencies: tuple[Descriptor, ...] = Field(alias="resolvedDependencies")
    """Engine sources and model manifests."""
    byproducts: tuple[Descriptor, ...]
    """Server logs."""
    counts: SealCounts
    """How much was sealed."""
    policy: SealPolicy
    """What sealing refused."""
    tool: SealTool
    """What sealed it."""
    prev_ledger_digest: Sha256
    """The ledger's last line when the seal was made."""
    self_sha256: Sha256
    """SHA-256 of this statement's canonical bytes with 64 zeros here, so that a changed bit shows without a witness."""


class RunSeal(FrozenModel):
    """The seal statement of a run."""

    statement_type: Literal["https://in-toto.io/Statement/v1"] = Field(default=STATEMENT_TYPE, alias="_type")
    """in-toto Statement v1."""
    subject: Annotated[tuple[Descriptor, ...], Field(min_length=4, max_length=4)]
    """The run folder (root digest), the tag manifest, the packet and the marker."""
    predicate_type: Literal["https://labctl.dev/run-seal/v1"] = Field(default=RUN_SEAL_TYPE, alias="predicateType")
    """What kind of statement this is."""
    predicate: RunSealPredicate
    """What is said of it."""


class AnalysisPredicate(FrozenModel):
    """What is said of an analysis."""

    facts: dict[SafeName, JsonValue]
    """Analyzer, statistics and gates, as the analysis gives them."""
    self_sha256: Sha256
    """As in the seal of a run."""


class AnalysisSeal(FrozenModel):
    """The seal statement of an analysis."""

    statement_type: Literal["https://in-toto.io/Statement/v1"] = Field(default=STATEMENT_TYPE, alias="_type")
    """in-toto Statement v1."""
    subject: Annotated[tuple[Descriptor, ...], Field(min_length=3, max_length=3)]
    """The run's seal, the analysis folder (root digest), and its tag manifest."""
    predicate_type: Literal["https://labctl.dev/analysis/v1"] = Field(default=ANALYSIS_SEAL_TYPE, alias="predicateType")
    """What kind of statement this is."""
    predicate: AnalysisPredicate
    """What is said of it."""


def descriptor(name: str, sha256: str) -> Descriptor:
    """One thing by its name and digest."""
    return Descriptor(name=name, digest=DigestSet(sha256=sha256))


def self_digest(seal: RunSeal | AnalysisSeal) -> str:
    """The digest that a statement must hold of itself."""
    document = seal.model_dump(mode="json")
    document["predicate"]["self_sha256"] = NO_DIGEST
    return sha256_hex(canonical_json(document))
