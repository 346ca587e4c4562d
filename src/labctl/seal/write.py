"""Step 7, writing: seal a run directory to which nothing will be added; Linux only (read leases)."""

import fcntl
import os
import platform
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from labctl import __version__
from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_hex
from labctl.durable import complete_once
from labctl.errors import BrokenEvidence, Problem, Refused
from labctl.records.run import ClosedRun, Layout, OutcomeKind
from labctl.records.seal import SealOutcome, SealTool
from labctl.rundir import BAG_FILES, RunPaths
from labctl.seal.bag import BAGIT_TXT, Bag, bag_info, hash_descriptor, read_failed, root_problems, tag_manifest
from labctl.seal.manifest import PAYLOAD_PREFIX, FileFacts
from labctl.seal.statement import LAYOUT_PATH, MARKER_PATH, PACKET_PATH, SealClaims, build_statement, facts_of
from labctl.seal.verify import SealedRun, adopt_sealed_run
from labctl.seal.walk import FoundFile, Signature, Tree, open_folder, signature_of, walk_payload

MAX_THREADS = 8
SEALED_MODE = 0o400
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KEEP = "find out what touched it; the run stays unsealed"


@dataclass(frozen=True, slots=True)
class _Settled:
    """A file that was hashed, and what must not change about it after that."""

    facts: FileFacts
    signature: Signature


def seal_run(closed: ClosedRun, prev_ledger_sha256: str) -> SealedRun:
    """Seal a closed run: payload on disk, manifest, tag manifest, and the seal statement last.

    Args:
        closed: the run; of an aborted one, empty folders are removed first and named in the seal.
        prev_ledger_sha256: the digest of the ledger's last line.

    Raises:
        Refused: sealing has begun before (EXISTS).
        BrokenEvidence: with every file that cannot be sealed, and why.
    """
    _require_fresh(closed.paths)
    outcome = closed.outcome
    notes = remove_empty_folders(closed.paths) if outcome.outcome is OutcomeKind.ABORTED else ()
    claim = SealOutcome(outcome=outcome.outcome, cause=outcome.cause, detail=outcome.detail + notes)
    return seal_payload(closed.paths, claim, prev_ledger_sha256)


def seal_payload(paths: RunPaths, outcome: SealOutcome, prev_ledger_sha256: str) -> SealedRun:
    """Seal what lies in a run folder; tag files that an earlier attempt left must be what is computed now.

    Raises:
        BrokenEvidence: with every file that cannot be sealed, and why.
        SealInvalid: packet, marker and outcome do not belong to each other.
    """
    paths = RunPaths(paths.root.resolve())
    try:
        _write_layout(paths)
        facts = _settle_payload(paths.root)
    except OSError as error:
        raise BrokenEvidence(read_failed(str(error.filename or paths.root), error)) from error
    bag, info = _bag(paths.root, facts)
    documents = (_document(bag, PACKET_PATH), _document(bag, MARKER_PATH))
    digests = (bag.root_sha256, bag.tag_manifest_sha256)
    claims = SealClaims(outcome, _tool(), prev_ledger_sha256)
    statement = build_statement(facts_of(paths.root.name, facts, digests, documents), claims)
    sealed = adopt_sealed_run(bag, statement)  # before anything is published: what is written must verify
    complete_once(paths.root / BAG_FILES[0], BAGIT_TXT)
    complete_once(paths.root / BAG_FILES[1], info)
    complete_once(paths.manifest, manifest_lines(bag.digests))
    complete_once(paths.tag_manifest, tag_manifest(info, manifest_lines(bag.digests)))
    complete_once(paths.seal, statement.canonical())
    return sealed


def remove_empty_folders(paths: RunPaths) -> tuple[str, ...]:
    """Remove folders that hold nothing, deepest first; one line about each, for the seal."""
    notes = []
    for folder, _, _ in os.walk(paths.data, topdown=False):
        path = Path(folder)
        if path != paths.data and not any(path.iterdir()):
            path.rmdir()
            notes.append(f"removed the empty folder {path.relative_to(paths.root).as_posix()!a}")
    return tuple(notes)


def _require_fresh(paths: RunPaths) -> None:
    names = (paths.layout, *(paths.root / name for name in BAG_FILES), paths.manifest, paths.tag_manifest, paths.seal)
    problems = [
        Problem(Code.EXISTS, str(path), "a run that nobody began to seal", "this file", "use `labctl seal abort RUN`")
        for path in names
        if os.path.lexists(path)
    ]
    if problems:
        raise Refused(problems)


def _write_layout(paths: RunPaths) -> None:
    with ExitStack() as stack:
        tree = _walk(paths.root, stack)
        _refuse([*root_problems(paths.root), *tree.problems])
        sizes = {found.path: found.signature.size_bytes for found in tree.files if found.path != LAYOUT_PATH}
    layout = Layout(files={path.removeprefix(PAYLOAD_PREFIX): size for path, size in sizes.items()})
    complete_once(paths.layout, layout.canonical())


def _settle_payload(root: Path) -> dict[str, FileFacts]:
    """Hash every file under a read lease, put files and folders on disk, and make sure that nothing moved meanwhile."""
    with ExitStack() as stack:
        tree = _walk(root, stack)
        _refuse(tree.problems)
        settled = _hash_all(tree)
        _refuse([fault for path, folder in reversed(tree.folders) if (fault := _sync(folder, path))])
        again = _walk(root, stack)
        before, after = {path: one.signature for path, one in settled.items()}, again.signatures()
        moved = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        _refuse([*again.problems, *(_changed(path) for path in moved)])
    return {path: one.facts for path, one in settled.items()}


def _walk(root: Path, stack: ExitStack) -> Tree:
    folder = open_folder(str(root), None)
    stack.callback(os.close, folder)
    return walk_payload(folder, stack)


def _hash_all(tree: Tree) -> dict[str, _Settled]:
    settled: dict[str, _Settled] = {}
    problems: list[Problem] = []
    threads = min(MAX_THREADS, len(os.sched_getaffinity(0)) + 2)
    with _lease_breaks_noticed() as alarm, ThreadPoolExecutor(threads) as pool:
        outcomes = pool.map(lambda found: _hash_leased(found, alarm), tree.files)
        for found, outcome in zip(tree.files, outcomes, strict=True):
            if isinstance(outcome, Problem):
                problems.append(outcome)
            elif outcome is not None:
                settled[found.path] = outcome
    if alarm.is_set() and not problems:
        problems.append(_open_writer("data", "one that came while files were hashed"))
    _refuse(problems)
    return settled


@contextmanager
def _lease_breaks_noticed() -> Iterator[threading.Event]:
    """A writer that opens a leased file makes the kernel send SIGIO, which ends the process if nobody catches it."""
    alarm = threading.Event()

    def notice(_number: int, _frame: FrameType | None) -> None:
        alarm.set()

    before = signal.signal(signal.SIGIO, notice)
    try:
        yield alarm
    finally:
        signal.signal(signal.SIGIO, before)


def _hash_leased(found: FoundFile, alarm: threading.Event) -> _Settled | Problem | None:
    """Digest and size of one file, or why it has none; None where another file's writer has ended the sealing."""
    if alarm.is_set():
        return None
    descriptor = -1
    try:
        descriptor = os.open(found.name, _FILE_FLAGS, dir_fd=found.folder)
        return _hash_open(descriptor, found)
    except OSError as error:
        return read_failed(found.path, error)
    finally:
        if descriptor >= 0:
            os.close(descriptor)  # the lease goes with it


def _hash_open(descriptor: int, found: FoundFile) -> _Settled | Problem:
    if fault := _lease_and_sync(descriptor, found):
        return fault
    before = signature_of(os.fstat(descriptor))
    facts = hash_descriptor(descriptor)
    if fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
        return _open_writer(found.path, "one that came while it was hashed")
    named = signature_of(os.stat(found.name, dir_fd=found.folder, follow_symlinks=False))
    is_at_rest = before.at_rest == found.signature.at_rest and before == named == signature_of(os.fstat(descriptor))
    if not is_at_rest or facts.size_bytes != before.size_bytes:
        return _changed(found.path)
    return _Settled(facts, before)


def _lease_and_sync(descriptor: int, found: FoundFile) -> Problem | None:
    if signature_of(os.fstat(descriptor)) != found.signature:
        return _changed(found.path)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return _open_writer(found.path, os.strerror(error.errno or 0))
    os.fchmod(descriptor, SEALED_MODE)
    return _sync(descriptor, found.path)


def _sync(descriptor: int, path: str) -> Problem | None:
    try:
        os.fsync(descriptor)
    except OSError as error:  # pragma: no cover - tested by a child under strace
        got = os.strerror(error.errno or 0)
        return Problem(Code.WRITE_FAILED, path, "the bytes on disk", got, "look at the disk; it is tried once only")
    return None


def _bag(root: Path, facts: Mapping[str, FileFacts]) -> tuple[Bag, bytes]:
    digests = {path: facts[path].sha256 for path in sorted(facts, key=str.encode)}
    manifest = manifest_lines(digests)
    info = bag_info(one.size_bytes for one in facts.values())
    return Bag(root, digests, dict(facts), sha256_hex(manifest), sha256_hex(tag_manifest(info, manifest))), info


def _document(bag: Bag, path: str) -> bytes:
    if path not in bag.digests:
        got = "nothing"
        raise BrokenEvidence(Problem(Code.MISSING_FILE, path, "a copy of the packet and its marker", got, _KEEP))
    return bag.read(path.removeprefix(PAYLOAD_PREFIX))


def _tool() -> SealTool:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return SealTool(version=__version__, python=platform.python_version(), platform=system)


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise BrokenEvidence(problems)


def _open_writer(path: str, got: str) -> Problem:
    return Problem(
        Code.OPEN_WRITER, path, "no process that writes to it", got, "end the writer; the run stays unsealed"
    )


def _changed(path: str) -> Problem:
    return Problem(Code.CHANGED_WHILE_READ, path, "a file at rest", "one that changed while it was sealed", _KEEP)
