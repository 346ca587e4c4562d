"""Where evidence comes from: a sealed run, or the closed legs of one that still runs."""

from pathlib import Path
from typing import Protocol

from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_hex
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, Problem

LIMIT_BYTES = 4 << 30
PHASE_FOLDERS = ("packet/", "host/", "analyzers/")
LEG_MANIFEST = "leg-manifest-sha256.txt"


class EvidenceFiles(Protocol):
    """Files of one run by their path below `data/`."""

    def names(self) -> tuple[str, ...]:
        """Every file."""

    def read(self, name: str) -> bytes:
        """The bytes of one file."""


class OpenRunFiles:
    """A run that still runs, as far as its legs are closed; what is in a leg is held against the leg's manifest."""

    def __init__(self, root: Path) -> None:
        self._data = root / "data"
        closed = [manifest.parent.name for manifest in self._data.glob(f"legs/*/{LEG_MANIFEST}")]
        self._prefixes = (*PHASE_FOLDERS, "journal.jsonl", *(f"legs/{name}/" for name in closed))

    def names(self) -> tuple[str, ...]:
        """Every file of the packet, the host, the journal and the closed legs."""
        found = (path.relative_to(self._data).as_posix() for path in self._data.rglob("*") if path.is_file())
        return tuple(sorted(name for name in found if name.startswith(self._prefixes)))

    def read(self, name: str) -> bytes:
        """The bytes of one file.

        Raises:
            BrokenEvidence: it is absent or not a regular file.
        """
        return read_regular(self._data / name, limit_bytes=LIMIT_BYTES)


def leg_manifest_problems(files: EvidenceFiles, folder: str) -> tuple[str | None, list[Problem]]:
    """The digest of a closed leg's own manifest (None if absent), and every line that its files do not bear out."""
    prefix = f"legs/{folder}/"
    manifest = f"{prefix}{LEG_MANIFEST}"
    names = files.names()
    if manifest not in names:
        return None, []
    data = files.read(manifest)
    found = {
        name.removeprefix(prefix): sha256_hex(files.read(name))
        for name in names
        if name.startswith(prefix) and name != manifest
    }
    if data == manifest_lines(found):
        return sha256_hex(data), []
    listed = {line[66:]: line[:64] for line in data.decode("utf-8", "replace").split("\n") if line}
    problems = [
        _mismatch(f"{prefix}{name}", listed.get(name), found.get(name))
        for name in sorted({*found, *listed})
        if found.get(name) != listed.get(name)
    ]
    return sha256_hex(data), problems or [_mismatch(manifest, "the canonical form", "another form")]


def _mismatch(where: str, expected: str | None, got: str | None) -> Problem:
    return Problem(
        Code.DIGEST_MISMATCH,
        f"data/{where}",
        expected or "no such file",
        got or "no such file",
        "restore the leg's files as the leg closed them",
    )


def require_readable(files: EvidenceFiles, name: str) -> bytes:
    """The bytes of a file without which nothing can be said.

    Raises:
        BrokenEvidence: it is not there.
    """
    if name not in files.names():
        raise BrokenEvidence(
            Problem(Code.MISSING_FILE, f"data/{name}", "a file", "nothing", "restore it from a copy of the run")
        )
    return files.read(name)
