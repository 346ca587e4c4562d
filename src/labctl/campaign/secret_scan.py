"""Before sealing: whether a run holds a secret of this environment; what is sealed is meant to be shown."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from labctl.codes import Code
from labctl.errors import BrokenEvidence, Problem
from labctl.prereg.environment import speaks_of_a_secret

MIN_CHARACTERS = 12
MAX_NAMED = 20
CHUNK_BYTES = 1 << 20
REMOVED = "[removed]"
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values that nothing of a run may hold; they are never shown."""

    values: tuple[str, ...] = field(repr=False)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Self:
        """The values of variables whose names speak of a secret, and passwords in URLs of any variable."""
        found = {value for name, value in environment.items() if speaks_of_a_secret(name)}
        found |= {password for value in environment.values() for password in _PASSWORD.findall(value)}
        return cls(tuple(sorted((value for value in found if len(value) >= MIN_CHARACTERS), key=len, reverse=True)))

    def hits(self, folder: Path) -> tuple[Problem, ...]:
        """Where files below a folder hold one, by path and offset."""
        if not self.values:
            return ()
        pattern, longest = self._pattern()
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        found = ((path.relative_to(folder), offset) for path in files for offset in _offsets(path, pattern, longest))
        do = "end the use of that secret; keep the run from others"
        return tuple(
            Problem(Code.SECRET_FOUND, shown.as_posix(), "no value of a secret variable", f"one at byte {offset}", do)
            for (shown, offset), _ in zip(found, range(MAX_NAMED), strict=False)
        )

    def refuse(self, folder: Path) -> None:
        """Nothing below a folder holds one.

        Raises:
            BrokenEvidence: with every place that does (SECRET_FOUND).
        """
        if found := self.hits(folder):
            raise BrokenEvidence(found)

    def scrubbed(self, text: str) -> str:
        """A text without them."""
        for value in self.values:
            text = text.replace(value, REMOVED)
        return text

    def _pattern(self) -> tuple[re.Pattern[bytes], int]:
        # as it is, and as it stands in JSON, where quotes and other characters are escaped
        forms = {form for value in self.values for form in (os.fsencode(value), *_in_json(value))}
        ordered = sorted(forms, key=len, reverse=True)
        return re.compile(b"|".join(map(re.escape, ordered))), len(ordered[0])


def _in_json(value: str) -> tuple[bytes, bytes]:
    plain, ascii_only = (json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True))
    return plain.encode("utf-8", "surrogateescape"), ascii_only.encode()


def _offsets(path: Path, pattern: re.Pattern[bytes], longest: int) -> Iterator[int]:
    start, data = 0, b""
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            data += chunk
            done = max(len(data) - longest + 1, 0)  # what begins later is seen whole with the next chunk
            for match in pattern.finditer(data):
                if match.start() < done:
                    yield start + match.start()
                    done = max(done, match.end())
            start, data = start + done, data[done:]
    yield from (start + match.start() for match in pattern.finditer(data))
