"""Cheap proof that what was verified in place is untouched: size, inode and times of every file, taken before hashing.

Hashing gigabytes again before each start would heat the machine that is about to be measured. The stamps are taken
before preflight hashes, so a change at any later moment shows in them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, assert_never

from labctl.codes import Code
from labctl.errors import BrokenEvidence, Problem
from labctl.packet.git_objects import ObjectReader
from labctl.packet.installed import installed_files
from labctl.packet.interpreter import InterpreterFacts, ask_interpreter, interpreter_path, pth_files
from labctl.packet.machine import machine_key
from labctl.packet.model import Packet
from labctl.packet.tool import PACKAGE_FOLDER
from labctl.prereg.model import GitSource, InstalledSource, Source

MAX_NAMED = 20


class Stamp(NamedTuple):
    """What the file system says of a file unread; its change time moves even where the other time is set back."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class InPlace:
    """Everything that a packet has verified in place, as it was stamped."""

    packet: Packet
    repository: Path
    facts: InterpreterFacts
    stamps: Mapping[Path, Stamp]

    def require_untouched(self) -> None:
        """Every file is there, and none is new or was touched.

        Raises:
            BrokenEvidence: with every file that is not as it was (FILE_DRIFT).
        """
        do = "find out who writes there while a campaign runs"
        before, now = self.stamps, _look(self.packet, self.repository, self.facts)
        problems = [
            Problem(
                Code.FILE_DRIFT, str(path), "a file as it was at preflight", _what(before.get(path), now.get(path)), do
            )
            for path in sorted({*before, *now})
            if before.get(path) != now.get(path)
        ]
        if problems:
            raise BrokenEvidence(problems[:MAX_NAMED])


def stamp_in_place(packet: Packet, repository: Path) -> InPlace:
    """Stamp everything that preflight is going to hash.

    Raises:
        Refused: the interpreter or a source cannot be found.
    """
    facts = ask_interpreter(interpreter_path(packet.host, packet.interpreter.key, repository))
    return InPlace(packet, repository, facts, _look(packet, repository, facts))


def _look(packet: Packet, repository: Path, facts: InterpreterFacts) -> dict[Path, Stamp]:
    stamps = ((path, _stamp(path)) for path in _files(packet, repository, facts))
    return {path: stamp for path, stamp in stamps if stamp is not None}


def _what(before: Stamp | None, now: Stamp | None) -> str:
    if before is None or now is None:
        return "a new file" if before is None else "no file"
    pairs = zip(Stamp._fields, before, now, strict=True)
    return ", ".join(f"{name} {then} then {later} now" for name, then, later in pairs if then != later)


def _files(packet: Packet, repository: Path, facts: InterpreterFacts) -> Iterator[Path]:
    yield from (facts.path.resolve(), *pth_files(facts), *PACKAGE_FOLDER.rglob("*.py"))
    for source in packet.preregistration.sources:
        yield from _source_files(source, packet, repository, facts)
    for model in packet.models:
        folder = machine_key(packet.host.models, model.name, repository)
        yield from (path for path in folder.rglob("*") if not path.is_dir())


def _source_files(source: Source, packet: Packet, repository: Path, facts: InterpreterFacts) -> Iterable[Path]:
    match source:
        case GitSource():
            folder = machine_key(packet.host.sources, source.git, repository)
            with ObjectReader(folder) as reader:
                return [folder / file.path for file in reader.files(source.commit)]
        case InstalledSource():
            return installed_files(facts, source)
        case _:
            assert_never(source)


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()  # through links: what they lead to is what runs
    except OSError:
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
