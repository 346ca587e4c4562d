"""Step 7, reading: a sealed run, and nothing else, comes out of here; works on any system."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, LabctlError, MalformedRecord, ManifestMismatch, Problem, SealInvalid
from labctl.frozen import strict_json
from labctl.records.marker import Marker
from labctl.records.run import Layout, Outcome, OutcomeKind
from labctl.records.seal import RunSeal, SealOutcome, self_digest
from labctl.rundir import MANIFEST, SEAL, RunPaths
from labctl.seal.bag import MAX_MANIFEST_BYTES, Bag, read_bag, require_sealed
from labctl.seal.manifest import PAYLOAD_PREFIX, compare_manifest
from labctl.seal.payload_kinds import is_payload_kind
from labctl.seal.statement import (
    LAYOUT_PATH,
    MARKER_PATH,
    OUTCOME_PATH,
    PACKET_PATH,
    SealedFacts,
    build_statement,
    claims_of,
    differences,
    facts_of,
)

MAX_SEAL_BYTES = 1 << 20
_RESTORE = "restore the run from a copy"


class SealState(StrEnum):
    """How a run folder looks, without hashing its payload."""

    UNSEALED = "unsealed"
    SEALED = "sealed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class SealedRun:
    """A run whose every byte was verified; made only in this module."""

    root: Path
    """Its folder."""
    paths: RunPaths
    """Its files."""
    statement: RunSeal
    """What its seal says."""
    seal_sha256: str
    """The digest of `seal.json`, by which analyses and the ledger name the run."""
    root_sha256: str
    """The root digest: that of the manifest."""
    bag: Bag
    """Its payload."""

    @property
    def run_dir(self) -> str:
        """The run's name, as sealed; its folder may have another."""
        return self.statement.subject[0].name

    @property
    def outcome(self) -> SealOutcome:
        """How the run ended, as sealed."""
        return self.statement.predicate.outcome

    def read(self, relative: str) -> bytes:
        """The bytes of a payload file (path below data/), hashed again against the manifest.

        Raises:
            ManifestMismatch: no such file in the run, or its bytes changed since the run was opened.
        """
        return self.bag.read(relative)

    def names(self) -> tuple[str, ...]:
        """The path below data/ of every payload file, sorted by bytes."""
        return tuple(path.removeprefix(PAYLOAD_PREFIX) for path in self.bag.digests)


def open_sealed_run(root: Path) -> SealedRun:
    """The sealed run in a folder, every byte verified.

    Raises:
        SealInvalid: no manifest or no seal (UNSEALED), or a seal that is malformed or speaks of something else.
        ManifestMismatch: the files are not those of the manifest.
    """
    root = root.resolve()
    require_sealed(root)
    seal_problems: list[Problem] = []
    statement, seal_sha256 = _read_seal(root, seal_problems)
    problems: list[Problem] = []
    bag = read_bag(root, None if statement is None else statement.subject[1].digest.sha256, problems)
    if bag is not None:
        problems += _payload_problems(bag)
    has_sound_files = not problems
    problems += seal_problems
    if bag is not None and statement is not None and has_sound_files:
        problems += _statement_problems(bag, statement)
    if problems or bag is None or statement is None:
        raise (SealInvalid if has_sound_files else ManifestMismatch)(problems)
    return _sealed(bag, statement, seal_sha256)


def adopt_sealed_run(bag: Bag, statement: RunSeal) -> SealedRun:
    """The sealed run that these digests and this statement make, for the writer, who has just hashed the payload.

    Raises:
        SealInvalid: the statement is not one that `open_sealed_run` would take.
    """
    problems = _statement_problems(bag, statement)
    if problems:
        raise SealInvalid(problems)
    return _sealed(bag, statement, sha256_hex(statement.canonical()))


def seal_state(root: Path) -> SealState:
    """Whether a run folder is sealed, for listings; payload bytes are not looked at."""
    problems: list[Problem] = []
    statement, _ = _read_seal(root, problems)
    if statement is None:
        is_unwritten = {problem.code for problem in problems} <= {Code.MISSING_FILE, Code.UNSEALED}
        return SealState.UNSEALED if is_unwritten else SealState.BROKEN
    try:
        manifest = read_regular(root / MANIFEST, limit_bytes=MAX_MANIFEST_BYTES)
    except BrokenEvidence:
        return SealState.BROKEN
    is_same = statement.subject[0].digest.sha256 == sha256_hex(manifest)
    return SealState.SEALED if is_same else SealState.BROKEN


def peek_statement(root: Path) -> RunSeal | None:
    """What a seal says, payload unverified; for listings only. None where there is no well-formed seal."""
    return _read_seal(root, [])[0]


def _sealed(bag: Bag, statement: RunSeal, seal_sha256: str) -> SealedRun:
    frozen = Bag(bag.root, MappingProxyType(dict(bag.digests)), bag.facts, bag.root_sha256, bag.tag_manifest_sha256)
    return SealedRun(bag.root, RunPaths(bag.root), statement, seal_sha256, bag.root_sha256, frozen)


def _payload_problems(bag: Bag) -> list[Problem]:
    sizes, problems = _layout_sizes(bag)
    problems += compare_manifest(bag.digests, sizes, bag.facts)
    for path in bag.digests:
        if not is_payload_kind(path.removeprefix(PAYLOAD_PREFIX)):
            problems.append(Problem(Code.EXTRA_FILE, path, "a file of a known kind", "another", "move it away"))
    return problems


def _layout_sizes(bag: Bag) -> tuple[Mapping[str, int], list[Problem]]:
    """Sizes by path, from a layout that is itself intact; none where it is not, so that one fault is told once."""
    try:
        layout = Layout.from_json(bag.read(LAYOUT_PATH.removeprefix(PAYLOAD_PREFIX)), LAYOUT_PATH)
    except ManifestMismatch as error:
        return {}, [] if LAYOUT_PATH in bag.digests else list(error.problems)
    except BrokenEvidence as error:
        return {}, list(error.problems)
    sizes = {PAYLOAD_PREFIX + path: size for path, size in layout.files.items()}
    if sizes.keys() ^ bag.digests.keys() != {LAYOUT_PATH}:
        got = "other names"
        return sizes, [Problem(Code.RECORD_CONFLICT, LAYOUT_PATH, "the names of the manifest", got, _RESTORE)]
    return sizes, []


def _read_seal(root: Path, problems: list[Problem]) -> tuple[RunSeal | None, str]:
    try:
        data = read_regular(root / SEAL, limit_bytes=MAX_SEAL_BYTES)
    except BrokenEvidence as error:
        problems += (replace(problem, where=SEAL) for problem in error.problems)
        return None, ""
    return _parse_seal(data, problems), sha256_hex(data)


def _parse_seal(data: bytes, problems: list[Problem]) -> RunSeal | None:
    try:
        strict_json(data, SEAL)
    except MalformedRecord as error:
        got = f"an incomplete or damaged document ({error.problems[0].got})"
        problems.append(Problem(Code.UNSEALED, SEAL, "a seal statement", got, _RESTORE))
        return None
    try:
        statement = RunSeal.from_json(data, SEAL)
    except MalformedRecord as error:
        problems += (Problem(Code.SEAL_FORM, p.where, p.expected, p.got, _RESTORE) for p in error.problems)
        return None
    if statement.canonical() != data:
        problems.append(Problem(Code.SEAL_FORM, SEAL, "canonical JSON", "another byte form", _RESTORE))
        return None
    if statement.predicate.self_sha256 != self_digest(statement):
        problems.append(Problem(Code.SEAL_FORM, SEAL, "the statement's own digest", "another", _RESTORE))
        return None
    return statement


def _statement_problems(bag: Bag, statement: RunSeal) -> list[Problem]:
    try:
        sealed = _facts(bag)
    except BrokenEvidence as error:
        return list(error.problems)
    places = list(differences(statement, build_statement(sealed, claims_of(statement))))
    problems = [_foreign(f"{SEAL}: {place}", "what the run's files say", "something else") for place in places]
    return problems + _identity_problems(sealed) + _outcome_problems(bag, statement.predicate.outcome)


def _facts(bag: Bag) -> SealedFacts:
    documents = (
        bag.read(PACKET_PATH.removeprefix(PAYLOAD_PREFIX)),
        bag.read(MARKER_PATH.removeprefix(PAYLOAD_PREFIX)),
    )
    # a copy may lie in a folder of any name: what counts is that seal and marker name the same run
    run_dir = Marker.from_json(documents[1], MARKER_PATH).run_dir
    return facts_of(run_dir, bag.facts, (bag.root_sha256, bag.tag_manifest_sha256), documents)


def _identity_problems(sealed: SealedFacts) -> list[Problem]:
    problems = []
    if sealed.marker.packet_sha256 != sealed.packet_sha256:
        problems.append(_foreign(MARKER_PATH, f"packet {sealed.packet_sha256}", sealed.marker.packet_sha256))
    if sealed.marker.kind != sealed.packet.kind:
        problems.append(_foreign(MARKER_PATH, f"kind {sealed.packet.kind}", sealed.marker.kind))
    return problems


def _outcome_problems(bag: Bag, said: SealOutcome) -> list[Problem]:
    if said.outcome is OutcomeKind.ABORTED:
        return []  # a run that another process sealed counts as aborted, whatever its controller had written
    try:
        written = Outcome.from_json(bag.read(OUTCOME_PATH.removeprefix(PAYLOAD_PREFIX)), OUTCOME_PATH)
    except LabctlError as error:
        return list(error.problems)
    if (written.outcome, written.cause) == (said.outcome, said.cause):
        return []
    return [_foreign(f"{SEAL}: predicate.outcome", f"{written.outcome}", f"{said.outcome}")]


def _foreign(where: str, expected: str, got: str) -> Problem:
    return Problem(Code.SEAL_FOREIGN, where, expected, got, "restore the run and its seal from one copy")
