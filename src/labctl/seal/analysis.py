"""The seal of an analysis: the same outer shape as a run's, made with manifest, fsync and O_EXCL only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_hex
from labctl.durable import read_regular, sync_file, sync_folder, write_once
from labctl.errors import BrokenEvidence, ManifestMismatch, Problem, SealInvalid
from labctl.records.seal import NO_DIGEST, AnalysisPredicate, AnalysisSeal, descriptor, self_digest
from labctl.rundir import BAG_FILES, MANIFEST, SEAL, TAG_MANIFEST
from labctl.seal.bag import (
    BAGIT_TXT,
    Bag,
    bag_info,
    hash_files,
    list_payload,
    read_bag,
    require_sealed,
    root_problems,
    tag_manifest,
)
from labctl.seal.manifest import PAYLOAD_PREFIX, compare_manifest

MAX_SEAL_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class SealedAnalysis:
    """An analysis whose every byte was verified; made only in this module."""

    root: Path
    """Its folder."""
    statement: AnalysisSeal
    """What its seal says."""
    seal_sha256: str
    """The digest of its `seal.json`."""
    bag: Bag
    """Its payload."""

    @property
    def run_dir(self) -> str:
        """The name of the run that was analyzed."""
        return self.statement.subject[0].name

    @property
    def run_seal_sha256(self) -> str:
        """The digest of that run's seal."""
        return self.statement.subject[0].digest.sha256

    def read(self, relative: str) -> bytes:
        """The bytes of a payload file (path below data/), hashed again against the manifest.

        Raises:
            ManifestMismatch: no such file, or its bytes changed since the analysis was opened.
        """
        return self.bag.read(relative)

    def names(self) -> tuple[str, ...]:
        """The path below data/ of every payload file, sorted by bytes."""
        return tuple(path.removeprefix(PAYLOAD_PREFIX) for path in self.bag.digests)


def seal_analysis(folder: Path, subject: tuple[str, str], facts: Mapping[str, JsonValue]) -> str:
    """Seal the files below `data/` of a folder; the digest of the seal.

    Args:
        folder: the analysis; nothing but `data/` is in it.
        subject: name and seal digest of the run that was analyzed.
        facts: what the seal says of the analysis.

    Raises:
        Refused: a tag file is there already (EXISTS).
        BrokenEvidence: with everything below data/ that cannot be sealed.
    """
    folder = folder.resolve()
    listing = list_payload(folder)
    problems = [*root_problems(folder), *listing.problems]
    for path in listing.files:
        sync_file(folder / path)
    found = hash_files(folder, listing.files, problems)
    if problems:
        raise BrokenEvidence(problems)
    for below in sorted({(folder / path).parent for path in listing.files}, reverse=True):
        sync_folder(below)
    manifest = manifest_lines({path: one.sha256 for path, one in found.items()})
    info = bag_info(one.size_bytes for one in found.values())
    tags = tag_manifest(info, manifest)
    statement = _statement(subject, (folder.name, sha256_hex(manifest), sha256_hex(tags)), facts).canonical()
    names = (*BAG_FILES, MANIFEST, TAG_MANIFEST, SEAL)
    for name, data in zip(names, (BAGIT_TXT, info, manifest, tags, statement), strict=True):
        write_once(folder / name, data)
    return sha256_hex(statement)


def open_analysis(folder: Path) -> SealedAnalysis:
    """The sealed analysis in a folder, every byte verified.

    Raises:
        SealInvalid: no manifest or no seal (UNSEALED), or a seal that is malformed or speaks of something else.
        ManifestMismatch: the files are not those of the manifest.
    """
    folder = folder.resolve()
    require_sealed(folder)
    data = read_regular(folder / SEAL, limit_bytes=MAX_SEAL_BYTES)
    statement = _parse(data)
    problems: list[Problem] = []
    bag = read_bag(folder, statement.subject[2].digest.sha256, problems)
    if bag is not None:
        problems += compare_manifest(bag.digests, {}, bag.facts)
    if problems or bag is None:
        raise ManifestMismatch(problems)
    _require_same(statement, bag)
    return SealedAnalysis(folder, statement, sha256_hex(data), bag)


def _parse(data: bytes) -> AnalysisSeal:
    try:
        seal = AnalysisSeal.from_json(data, SEAL)
    except BrokenEvidence as error:
        raise SealInvalid(
            Problem(Code.SEAL_FORM, p.where, p.expected, p.got, "restore the analysis from a copy")
            for p in error.problems
        ) from error
    if seal.canonical() != data or seal.predicate.self_sha256 != self_digest(seal):
        got = "another byte form or another digest of itself"
        raise SealInvalid(Problem(Code.SEAL_FORM, SEAL, "canonical JSON", got, "restore the analysis from a copy"))
    return seal


def _require_same(seal: AnalysisSeal, bag: Bag) -> None:
    said = (seal.subject[0].name, seal.subject[0].digest.sha256)
    if seal != _statement(said, (bag.root.name, bag.root_sha256, bag.tag_manifest_sha256), seal.predicate.facts):
        do = "restore the analysis from one copy"
        raise SealInvalid(Problem(Code.SEAL_FOREIGN, SEAL, "this analysis", "other names or digests", do))


def _statement(subject: tuple[str, str], bag: tuple[str, str, str], facts: Mapping[str, JsonValue]) -> AnalysisSeal:
    subjects = (descriptor(*subject), descriptor(bag[0], bag[1]), descriptor(TAG_MANIFEST, bag[2]))
    draft = AnalysisSeal(subject=subjects, predicate=AnalysisPredicate(facts=dict(facts), self_sha256=NO_DIGEST))
    predicate = AnalysisPredicate(facts=dict(facts), self_sha256=self_digest(draft))
    return AnalysisSeal(subject=subjects, predicate=predicate)
