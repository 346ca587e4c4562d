"""The files of one start's folder: read only, each read once, and what is not there is told."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from labctl.analyze.foreign.draft import ViewDraft
from labctl.codes import Code
from labctl.durable import read_regular
from labctl.engines.foreign_lab import BENCH, FILES_OF_A_START, IDENTITY, LOG
from labctl.errors import BrokenEvidence, MalformedRecord, NotFound, Problem
from labctl.frozen import strict_json

LIMIT_BYTES = 1 << 28
MOST_FILES = 10_000
OWN_RUN = frozenset({"manifest-sha256.txt", "data/packet/packet.json"})
DO = "name the folder of one start"


@dataclass(frozen=True, slots=True)
class StartFolder:
    """A folder that labctl did not write."""

    root: Path
    names: tuple[str, ...]
    draft: ViewDraft

    def bytes_of(self, name: str, purpose: str) -> bytes | None:
        """The bytes of a file; None where it is absent, which the draft then says with what it is needed for."""
        if name not in self.names:
            self.draft.missing.append(f"{name}: {purpose}")
            return None
        try:
            return read_regular(self.root / name, limit_bytes=LIMIT_BYTES)
        except BrokenEvidence as error:
            self._tell(name, error)
            return None

    def is_there(self, name: str, purpose: str) -> bool:
        """Whether a file can be read in pieces; where not, the draft says why."""
        if name not in self.names:
            self.draft.missing.append(f"{name}: {purpose}")
            return False
        path = self.root / name
        is_regular = path.is_file() and not path.is_symlink()
        if not is_regular or not os.access(path, os.R_OK):
            got = "one that may not be read" if is_regular else "a link or another kind"
            self.draft.finds(name, f"cannot be read: expected a regular file, got {got}")
            return False
        return True

    def document(self, name: str, purpose: str) -> dict[str, object] | None:
        """A JSON object; None where it is absent or is none."""
        data = self.bytes_of(name, purpose)
        try:
            found = None if data is None else strict_json(data, name)
        except MalformedRecord as error:
            self._tell(name, error)
            return None
        if data is not None and not isinstance(found, dict):
            self.draft.finds(name, "is no JSON object")
        return found if isinstance(found, dict) else None

    def pairs(self, name: str, purpose: str) -> dict[str, str]:
        """Lines `key=value`; other lines are left out."""
        text = (self.bytes_of(name, purpose) or b"").decode("utf-8", "backslashreplace")
        parted = (line.rstrip("\r").partition("=") for line in text.split("\n"))
        return {key: value for key, sign, value in parted if sign and key.isidentifier()}

    def _tell(self, name: str, error: BrokenEvidence) -> None:
        for problem in error.problems:
            self.draft.finds(name, f"cannot be read: expected {problem.expected}, got {problem.got}")


def open_start_folder(root: Path, draft: ViewDraft) -> StartFolder:
    """The folder, with the names of its files.

    Raises:
        NotFound: there is no such folder, it holds nothing that a start leaves, or it is a run of labctl's own.
    """
    names = tuple(sorted(islice(_names_below(root), MOST_FILES + 1)))
    got, do = _why_not(root, names)
    if got:
        raise NotFound(Problem(Code.NOT_FOUND, str(root), "a folder of evidence", got, do))
    return StartFolder(root, names, draft)


def _names_below(root: Path) -> Iterator[str]:
    """Every name that is no folder, links and other kinds included: reading one of those says what it is."""
    for folder, _, names in os.walk(root):
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def _why_not(root: Path, names: tuple[str, ...]) -> tuple[str, str]:
    if not names:
        return "an empty one" if root.is_dir() else "a file" if root.exists() else "no such folder", DO
    if {*names} >= OWN_RUN:
        return "a run of labctl's own", f"run `labctl runs show {root}` or `labctl seal verify {root}`"
    if len(names) > MOST_FILES:
        return f"more than {MOST_FILES} files", DO
    if not {*names} & FILES_OF_A_START:
        return f"{len(names)} files, none of which is named as a file of a start ({LOG}, {IDENTITY}, {BENCH}, …)", DO
    return "", ""
