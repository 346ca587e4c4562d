"""The BagIt shape that runs and analyses share, read on any system: listing, hashing, tag files, verification."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from labctl.codes import Code
from labctl.digest import CHUNK_BYTES, manifest_lines, sha256_hex
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, ManifestMismatch, Problem, SealInvalid
from labctl.rundir import BAG_FILES, MANIFEST, SAFE_PART, SEAL, TAG_MANIFEST
from labctl.seal.manifest import PAYLOAD_PREFIX, FileFacts, compare_manifest, parse_manifest, shown

BAGIT_TXT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
ROOT_NAMES = frozenset({"data", *BAG_FILES, MANIFEST, TAG_MANIFEST, SEAL})
MAX_MANIFEST_BYTES = 64 << 20
MAX_TAG_FILE_BYTES = 1 << 20
MAX_DEPTH = 16
VERIFY_THREADS = 2
_READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(slots=True)
class Listing:
    """What lies below the payload folder, by path relative to the bag's root."""

    files: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Bag:
    """A bag whose every payload byte agrees with its manifest."""

    root: Path
    digests: Mapping[str, str]
    """Digest by path, `data/` included."""
    facts: Mapping[str, FileFacts]
    """Digest and size of each file that was found."""
    root_sha256: str
    tag_manifest_sha256: str

    def read(self, relative: str) -> bytes:
        """The bytes of a payload file (path below data/), hashed again, so that what is parsed is what was verified.

        Raises:
            ManifestMismatch: no such file, or other bytes than those of the manifest.
        """
        path = PAYLOAD_PREFIX + relative
        if path not in self.digests or path not in self.facts:
            raise ManifestMismatch(
                Problem(Code.MISSING_FILE, shown(path), "a file of the manifest", "nothing", "name a file of the run")
            )
        data = read_regular(self.root / path, limit_bytes=self.facts[path].size_bytes)
        problems = list(
            compare_manifest({path: self.digests[path]}, {}, {path: FileFacts(sha256_hex(data), len(data))})
        )
        if problems:
            raise ManifestMismatch(problems)
        return data


def bag_info(sizes: Iterable[int]) -> bytes:
    """The bytes of `bag-info.txt` for a payload of these file sizes."""
    every = tuple(sizes)
    return f"Bag-Software-Agent: labctl\nPayload-Oxum: {sum(every)}.{len(every)}\n".encode()


def tag_manifest(info: bytes, manifest: bytes) -> bytes:
    """The bytes of the tag manifest."""
    tags = {BAG_FILES[0]: BAGIT_TXT, BAG_FILES[1]: info, MANIFEST: manifest}
    return manifest_lines({name: sha256_hex(data) for name, data in tags.items()})


def require_sealed(root: Path) -> None:
    """Refuse a folder that has no manifest or no seal: there is nothing that could be checked.

    Raises:
        SealInvalid: UNSEALED, for each of the two that is absent or empty.
    """
    problems = [
        Problem(Code.UNSEALED, name, "a sealed folder", "no such file", "seal the run first (`labctl seal abort RUN`)")
        for name in (MANIFEST, SEAL)
        if not os.path.lexists(root / name)
    ]
    if problems:
        raise SealInvalid(problems)


def read_bag(root: Path, sealed_tags_sha256: str | None, problems: list[Problem]) -> Bag | None:
    """The bag in a folder; None where there is no manifest that can be relied on.

    Args:
        root: the folder.
        sealed_tags_sha256: what a sound seal says of the tag manifest; it decides who is wrong when the two disagree.
        problems: what is wrong with the bag is added here.
    """
    tags = _read_tag(root / TAG_MANIFEST, MAX_TAG_FILE_BYTES, problems)
    tag_problems = list(_tag_problems(root, tags, sealed_tags_sha256))
    problems += [*tag_problems, *root_problems(root)]
    manifest = _read_tag(root / MANIFEST, MAX_MANIFEST_BYTES, problems)
    digests = _parsed(manifest, MANIFEST, PAYLOAD_PREFIX, problems)
    listing = list_payload(root)
    problems += listing.problems
    is_blamed = any(problem.where == MANIFEST for problem in tag_problems)
    if digests is None or manifest is None or is_blamed:
        return None
    facts = hash_files(root, listing.files, problems)
    return Bag(root, digests, facts, sha256_hex(manifest), sha256_hex(tags or b""))


def list_payload(root: Path) -> Listing:
    """Every regular file below data/, and everything there that must not be."""
    listing = Listing()
    if (root / "data").is_symlink() or not (root / "data").is_dir():
        listing.problems.append(forbidden("data", "a folder", "something else"))
        return listing
    _list_folder(root / "data", "data", listing)
    return listing


def hash_files(root: Path, files: Iterable[str], problems: list[Problem]) -> dict[str, FileFacts]:
    """Digest and size of each file; a file that cannot be read is a problem."""
    facts: dict[str, FileFacts] = {}
    with ThreadPoolExecutor(VERIFY_THREADS) as pool:
        for path, outcome in pool.map(lambda path: (path, _hash_path(root / path, path)), files):
            if isinstance(outcome, Problem):
                problems.append(outcome)
            else:
                facts[path] = outcome
    return facts


def hash_descriptor(descriptor: int) -> FileFacts:
    """Digest and size of what an open file holds, from its start to its end."""
    state = hashlib.sha256()
    buffer = memoryview(bytearray(CHUNK_BYTES))
    size_bytes = 0
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            state.update(buffer[:count])
            size_bytes += count
    return FileFacts(state.hexdigest(), size_bytes)


def kind_fault(status: os.stat_result) -> str | None:
    """Why something that is not a folder cannot be evidence, on any system; None for a plain regular file."""
    if stat.S_ISLNK(status.st_mode):
        return "a symbolic link"
    if not stat.S_ISREG(status.st_mode):
        return "neither a file nor a folder"
    if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        return "a set-id file"
    return None


def forbidden(path: str, expected: str, got: str) -> Problem:
    """A thing that no run may hold."""
    return Problem(Code.FORBIDDEN_FILE, shown(path), expected, got, "move it away; labctl never makes such a thing")


def empty_folder(path: str) -> Problem:
    """A folder that holds nothing, which git would drop."""
    return Problem(Code.EXTRA_FILE, shown(path), "no empty folder", "an empty folder", "remove it")


def read_failed(path: str, error: OSError) -> Problem:
    """A file whose bytes did not come."""
    got = os.strerror(error.errno or 0)
    return Problem(Code.READ_FAILED, shown(path), "readable bytes", got, "look at the disk and at the file's mode")


def _list_folder(folder: Path, path: str, listing: Listing) -> None:
    try:
        with os.scandir(folder) as found:
            entries = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in found)
    except OSError as error:
        listing.problems.append(read_failed(path, error))
        return
    if not entries:
        listing.problems.append(empty_folder(path))
    if path.count("/") > MAX_DEPTH:
        listing.problems.append(forbidden(path, f"at most {MAX_DEPTH} folders in each other", "more"))
        return
    for name, status in entries:
        below = f"{path}/{name}"
        if not SAFE_PART.match(name):
            listing.problems.append(_unsafe_name(below, status))
        elif stat.S_ISDIR(status.st_mode):
            _list_folder(folder / name, below, listing)
        elif fault := kind_fault(status):
            listing.problems.append(forbidden(below, "a regular file", fault))
        else:
            listing.files.append(below)


def _unsafe_name(path: str, status: os.stat_result) -> Problem:
    kind = "a folder" if stat.S_ISDIR(status.st_mode) else kind_fault(status) or "a file"
    return forbidden(path, "names of letters, digits, dots, hyphens and underscores", kind)


def root_problems(root: Path) -> Iterator[Problem]:
    """Entries beside those that a bag of ours has."""
    for name in sorted(set(os.listdir(root)) - ROOT_NAMES):  # noqa: PTH208 (names only)
        yield Problem(Code.EXTRA_FILE, shown(name), "no such entry", "something with this name", "move it away")


def _tag_problems(root: Path, data: bytes | None, sealed_sha256: str | None) -> list[Problem]:
    problems: list[Problem] = []
    tags = _parsed(data, TAG_MANIFEST, "", problems)
    if tags is not None:
        problems += _tag_differences(root, tags)
    own = sha256_hex(data or b"")
    if problems and sealed_sha256 is not None and own != sealed_sha256:
        return [*compare_manifest({TAG_MANIFEST: sealed_sha256}, {}, {TAG_MANIFEST: FileFacts(own, 0)})]
    return problems


def _tag_differences(root: Path, tags: Mapping[str, str]) -> Iterator[Problem]:
    found = {}
    for name in (*BAG_FILES, MANIFEST):
        outcome = _hash_path(root / name, name)
        if isinstance(outcome, FileFacts):
            found[name] = outcome
        elif outcome.code is not Code.MISSING_FILE:  # what is missing shows in the comparison
            yield outcome
    yield from compare_manifest(tags, {}, found)


def _parsed(data: bytes | None, where: str, prefix: str, problems: list[Problem]) -> dict[str, str] | None:
    if data is None:
        return None
    try:
        return parse_manifest(data, where, prefix=prefix)
    except ManifestMismatch as error:
        problems += error.problems
        return None


def _read_tag(path: Path, limit_bytes: int, problems: list[Problem]) -> bytes | None:
    try:
        return read_regular(path, limit_bytes=limit_bytes)
    except BrokenEvidence as error:
        problems += (replace(problem, where=path.name) for problem in error.problems)
        return None


def _hash_path(path: Path, name: str) -> FileFacts | Problem:
    try:
        with _opened(path) as descriptor:
            fault = kind_fault(os.fstat(descriptor))
            return hash_descriptor(descriptor) if fault is None else forbidden(name, "a regular file", fault)
    except FileNotFoundError:
        return Problem(Code.MISSING_FILE, shown(name), "a file", "nothing", "restore it from a copy")
    except OSError as error:
        return read_failed(name, error)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, _READ_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
