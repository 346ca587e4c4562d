"""Which lines of a log match which byte patterns, in one pass over chunks of any size."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labctl.analyze.literals import needed_literals

CHUNK_BYTES = 4 << 20
Groups = tuple[tuple[str, str], ...]
"""The named groups of one matching line, by name; a group that took no part is left out."""


@dataclass(slots=True)
class LineMatches:
    """The lines that one pattern matches."""

    count: int = 0
    first: bytes | None = None
    groups: Counter[Groups] = field(default_factory=Counter)
    """How many of them have which named groups; empty where the pattern names none."""


def log_chunks(log: bytes) -> Iterator[bytes]:
    """A log in memory, in chunks."""
    return (log[at : at + CHUNK_BYTES] for at in range(0, len(log), CHUNK_BYTES))


def file_chunks(path: Path) -> Iterator[bytes]:
    """A log on disk, in chunks."""
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def find_lines(chunks: Iterable[bytes], patterns: Sequence[str]) -> dict[str, LineMatches]:
    """The matching lines of every pattern; lines end at LF, and a CR before it is no part of them."""
    searches = [_Search(pattern) for pattern in dict.fromkeys(patterns)]
    for lines in _whole_lines(chunks):
        for search in searches:
            search.look(lines)
    return {search.pattern: search.matches for search in searches}


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Runs of whole lines, each ended by LF but for the log's last."""
    rest: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, chunk[:end]))
            rest = [chunk[end:]]
        else:
            rest.append(chunk)
    if last := b"".join(rest):
        yield last


class _Search:
    """One pattern, and what was found of it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.matches = LineMatches()
        self._compiled = re.compile(pattern.encode())
        self._literals = sorted(needed_literals(pattern))

    def look(self, lines: bytes) -> None:
        """Match every line that may match; without a text to look for, that is every one."""
        if not self._literals:
            for line in lines.removesuffix(b"\n").split(b"\n"):
                self._match(line.removesuffix(b"\r"))
            return
        starts: set[int] = set()
        for literal in self._literals:
            starts.update(_line_starts(lines, literal))
        for start in sorted(starts):
            end = lines.find(b"\n", start)
            self._match(lines[start : end if end >= 0 else len(lines)].removesuffix(b"\r"))

    def _match(self, line: bytes) -> None:
        found = self._compiled.search(line)
        if found is None:
            return
        self.matches.count += 1
        self.matches.first = line if self.matches.first is None else self.matches.first
        if self._compiled.groupindex:
            named = found.groupdict()
            told = (
                (name, value.decode("utf-8", "backslashreplace")) for name, value in named.items() if value is not None
            )
            self.matches.groups[tuple(sorted(told))] += 1


def _line_starts(lines: bytes, literal: bytes) -> Iterator[int]:
    """Where the lines start that hold a text."""
    at = lines.find(literal)
    while at >= 0:
        yield lines.rfind(b"\n", 0, at) + 1
        end = lines.find(b"\n", at)
        at = lines.find(literal, end) if end >= 0 else -1
