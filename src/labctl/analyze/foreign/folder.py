"""The files of one start's folder: read only, each read once, and what is not there is told."""

from dataclasses import dataclass
from pathlib import Path

from labctl.analyze.foreign.draft import ViewDraft
from labctl.codes import Code
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, MalformedRecord, NotFound, Problem
from labctl.frozen import strict_json

LIMIT_BYTES = 1 << 30


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
        NotFound: there is no such folder, or it holds nothing.
    """
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    if not found:
        got = "an empty one" if root.is_dir() else "no such folder"
        do = "name the folder of one start"
        raise NotFound(Problem(Code.NOT_FOUND, str(root), "a folder of evidence", got, do))
    return StartFolder(root, tuple(found), draft)
