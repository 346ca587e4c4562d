"""The seal statement of a run, computed from its files: the writer publishes it, the verifier computes it again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from labctl.digest import sha256_hex
from labctl.packet.model import FrozenGitSource, FrozenInstalledSource, FrozenSource, Packet
from labctl.records.marker import Marker
from labctl.records.seal import (
    NO_DIGEST,
    Descriptor,
    PacketDigests,
    RunSeal,
    RunSealPredicate,
    SealCounts,
    SealOutcome,
    SealPolicy,
    SealTool,
    descriptor,
    self_digest,
)
from labctl.rundir import TAG_MANIFEST
from labctl.seal.manifest import PAYLOAD_PREFIX, FileFacts

PACKET_PATH = f"{PAYLOAD_PREFIX}packet/packet.json"
MARKER_PATH = f"{PAYLOAD_PREFIX}packet/marker.copy.json"
OUTCOME_PATH = f"{PAYLOAD_PREFIX}outcome.json"
LAYOUT_PATH = f"{PAYLOAD_PREFIX}layout.json"


@dataclass(frozen=True, slots=True)
class SealedFacts:
    """What the files of a run say."""

    run_dir: str
    root_sha256: str
    tag_manifest_sha256: str
    packet: Packet
    packet_sha256: str
    marker: Marker
    marker_sha256: str
    facts: Mapping[str, FileFacts]
    """Digest and size of each payload file, by path with `data/`."""


@dataclass(frozen=True, slots=True)
class SealClaims:
    """What only the sealer knows."""

    outcome: SealOutcome
    tool: SealTool
    prev_ledger_sha256: str


def build_statement(sealed: SealedFacts, claims: SealClaims) -> RunSeal:
    """The one statement for these files and these claims."""
    draft = RunSeal(subject=_subjects(sealed), predicate=_predicate(sealed, claims, NO_DIGEST))
    return RunSeal(subject=draft.subject, predicate=_predicate(sealed, claims, self_digest(draft)))


def claims_of(statement: RunSeal) -> SealClaims:
    """What a statement says that its files do not."""
    said = statement.predicate
    return SealClaims(said.outcome, said.tool, said.prev_ledger_digest)


def differences(found: RunSeal, computed: RunSeal) -> Iterator[str]:
    """The places in which two statements differ, such as `predicate.counts`."""
    for number, (one, other) in enumerate(zip(found.subject, computed.subject, strict=True)):
        if one != other:
            yield f"subject[{number}] ({other.name})"
    left, right = (statement.predicate.model_dump(mode="json") for statement in (found, computed))
    yield from (f"predicate.{key}" for key in left if key != "self_sha256" and left[key] != right[key])


def packet_digests(packet: Packet, packet_sha256: str, marker: Marker) -> PacketDigests:
    """The digest set of a packet, with the approvals that the marker counted."""
    return PacketDigests(
        packet_sha256=packet_sha256,
        packet_kind=packet.kind,
        prereg_sha256=packet.prereg_yaml_sha256,
        git_commit=packet.repository.commit,
        tree_dirhash=packet.repository.tree_dirhash,
        files={pinned.role: pinned.sha256 for pinned in packet.files},
        engine_sha256=packet.engine_sha256,
        interpreter_sha256=packet.interpreter.resolved_sha256,
        tool_dirhash=packet.tool.tree_dirhash,
        analyzers={analyzer.name: analyzer.sha256 for analyzer in packet.analyzers},
        approvals=marker.approvals,
    )


def _subjects(sealed: SealedFacts) -> tuple[Descriptor, ...]:
    return (
        descriptor(sealed.run_dir, sealed.root_sha256),
        descriptor(TAG_MANIFEST, sealed.tag_manifest_sha256),
        descriptor("packet.json", sealed.packet_sha256),
        descriptor("marker", sealed.marker_sha256),
    )


def _predicate(sealed: SealedFacts, claims: SealClaims, own_sha256: str) -> RunSealPredicate:
    return RunSealPredicate(
        outcome=claims.outcome,
        order=sealed.marker.order,
        externalParameters=packet_digests(sealed.packet, sealed.packet_sha256, sealed.marker),
        resolvedDependencies=_dependencies(sealed.packet),
        byproducts=_byproducts(sealed.facts),
        counts=_counts(sealed.facts),
        policy=SealPolicy(),
        tool=claims.tool,
        prev_ledger_digest=claims.prev_ledger_sha256,
        self_sha256=own_sha256,
    )


def _dependencies(packet: Packet) -> tuple[Descriptor, ...]:
    sources = tuple(_source(source) for source in packet.sources)
    return sources + tuple(descriptor(f"model/{model.name}", model.manifest_sha256) for model in packet.models)


def _source(source: FrozenSource) -> Descriptor:
    match source:
        case FrozenGitSource():
            return descriptor(f"git/{source.name}", source.tree_dirhash)
        case FrozenInstalledSource():
            return descriptor(f"installed/{source.name}", source.files_dirhash)
        case _:
            assert_never(source)


def _byproducts(facts: Mapping[str, FileFacts]) -> tuple[Descriptor, ...]:
    return tuple(descriptor(path, facts[path].sha256) for path in sorted(facts) if path.endswith("/server.log"))


def _counts(facts: Mapping[str, FileFacts]) -> SealCounts:
    legs = {path.split("/")[2] for path in facts if path.startswith(f"{PAYLOAD_PREFIX}legs/")}
    return SealCounts(files=len(facts), bytes=sum(one.size_bytes for one in facts.values()), legs=len(legs))


def facts_of(
    run_dir: str, files: Mapping[str, FileFacts], bag: tuple[str, str], documents: tuple[bytes, bytes]
) -> SealedFacts:
    """What the files of a run say, its packet and its marker parsed from the very bytes that were hashed.

    Args:
        run_dir: the run's folder name.
        files: digest and size of each payload file.
        bag: the digests of the manifest and of the tag manifest.
        documents: the bytes of the packet and of the marker.

    Raises:
        MalformedRecord: one of the two documents is not what it must be.
    """
    packet_bytes, marker_bytes = documents
    return SealedFacts(
        run_dir=run_dir,
        root_sha256=bag[0],
        tag_manifest_sha256=bag[1],
        packet=Packet.from_json(packet_bytes, PACKET_PATH),
        packet_sha256=sha256_hex(packet_bytes),
        marker=Marker.from_json(marker_bytes, MARKER_PATH),
        marker_sha256=sha256_hex(marker_bytes),
        facts=files,
    )
