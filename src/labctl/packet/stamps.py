"""Cheap proof that what was verified in place is untouched: size, inode and times of every file, taken before hashing.

Hashing gigabytes again before each start would heat the machine that is about to be measured. The stamps are taken
before preflight hashes, so a change at any later moment shows in them.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, assert_never

from labctl.codes import Code
from labctl.errors import BrokenEvidence, Problem
from labctl.packet.git_objects import ObjectReader
from labctl.packet.installed import CODE_SUFFIXES, installed_package
from labctl.packet.interpreter import (
    InterpreterFacts,
    ask_interpreter,
    interpreter_path,
    record_files,
    startup_files,
)
from labctl.packet.machine import machine_key
from labctl.packet.model import Packet
from labctl.packet.tool import PACKAGE_FOLDER
from labctl.packet.watched import Depth, WatchedFolder, files_below
from labctl.prereg.sources import GitSource, InstalledSource

MAX_NAMED = 20
Part = tuple[tuple[Path, ...], tuple[WatchedFolder, ...]]


class Stamp(NamedTuple):
    """What the file system says of a file unread; its change time moves even where the other time is set back."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Watch:
    """What is looked at: files by name, and folders in which a new file would be code or data of what was verified."""

    files: frozenset[str]
    folders: tuple[WatchedFolder, ...]

    def look(self) -> dict[str, Stamp]:
        """The stamp of every file that is there now."""
        found = (path for folder in self.folders for path in files_below(folder))
        stamps = ((path, _stamp(path)) for path in self.files.union(found))
        return {path: stamp for path, stamp in stamps if stamp is not None}


@dataclass(frozen=True, slots=True)
class InPlace:
    """Everything that a packet has verified in place, as it was stamped."""

    watch: Watch
    stamps: Mapping[str, Stamp]

    def require_untouched(self) -> None:
        """Every file is there, and none is new or was touched.

        Raises:
            BrokenEvidence: with every file that is not as it was (FILE_DRIFT).
        """
        now = self.watch.look()
        if now != self.stamps:
            raise BrokenEvidence(list(self._differences(now))[:MAX_NAMED])

    def _differences(self, now: Mapping[str, Stamp]) -> Iterator[Problem]:
        do = "find out who writes there while a campaign runs"
        for path in sorted({*self.stamps, *now}):
            before, after = self.stamps.get(path), now.get(path)
            if before != after:
                yield Problem(Code.FILE_DRIFT, path, "a file as it was at preflight", _what(before, after), do)


def stamp_in_place(packet: Packet, repository: Path) -> InPlace:
    """Stamp everything that preflight is going to hash.

    Raises:
        Refused: the interpreter or a source cannot be found.
    """
    facts = ask_interpreter(interpreter_path(packet.host, packet.interpreter.key, repository))
    parts = [_own_parts(facts), *_source_parts(packet, repository, facts), *_model_parts(packet, repository)]
    files = frozenset(str(path) for part in parts for path in part[0])
    watch = Watch(files, tuple(folder for part in parts for folder in part[1]))
    return InPlace(watch, watch.look())


def _what(before: Stamp | None, now: Stamp | None) -> str:
    if before is None or now is None:
        return "a new file" if before is None else "no file"
    pairs = zip(Stamp._fields, before, now, strict=True)
    return ", ".join(f"{name} {then} then {later} now" for name, then, later in pairs if then != later)


def _own_parts(facts: InterpreterFacts) -> Part:
    site = tuple(WatchedFolder(entry, (".pth",), Depth.FOLDER) for entry in facts.answer.path)
    files = (facts.path.resolve(), *startup_files(facts), *record_files(facts))
    return files, (*site, WatchedFolder(str(PACKAGE_FOLDER), CODE_SUFFIXES))


def _source_parts(packet: Packet, repository: Path, facts: InterpreterFacts) -> Iterator[Part]:
    for source in packet.preregistration.sources:
        match source:
            case GitSource():
                folder = machine_key(packet.host.sources, source.git, repository)
                with ObjectReader(folder) as reader:
                    yield tuple(folder / file.path for file in reader.files(source.commit)), ()
            case InstalledSource():
                package = installed_package(facts, source)
                yield package.listed, tuple(WatchedFolder(str(top), CODE_SUFFIXES) for top in package.folders)
            case _:
                assert_never(source)


def _model_parts(packet: Packet, repository: Path) -> Iterator[Part]:
    for model in packet.models:
        yield (), (WatchedFolder(str(machine_key(packet.host.models, model.name, repository))),)
    for binaries in packet.binaries:
        yield (), (WatchedFolder(str(machine_key(packet.host.binaries, binaries.name, repository))),)


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116 (thousands of files before each start); through links: their target runs
    except OSError:
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
