"""An installed package held against its own RECORD: every listed file hashed again by this process."""

import base64
import csv
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from labctl.codes import Code
from labctl.digest import dirhash, sha256_file, sha256_hex
from labctl.errors import DirtySource, Problem
from labctl.packet.interpreter import InterpreterFacts
from labctl.packet.model import FrozenInstalledSource
from labctl.prereg.sources import InstalledSource

MAX_NAMED = 50
CODE_SUFFIXES = (".py", ".so", ".pyd", ".pth")
_REINSTALL = "install the package again in this environment"


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One file of a RECORD."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """An installed package on disk."""

    listed: tuple[Path, ...]
    """Every file of its RECORD but byte code."""
    folders: tuple[Path, ...]
    """Its own folders, in which code that RECORD does not list is a fault."""


def verify_installed(facts: InterpreterFacts, source: InstalledSource) -> FrozenInstalledSource:
    """Hold every file of an installed package against its RECORD.

    Raises:
        DirtySource: with every file that is missing, differs, or is code that RECORD does not know (INSTALLED_DRIFT).
    """
    found = _find(facts, source)
    record = _record_bytes(found, source)
    top = Path(str(found.locate_file(""))).resolve()
    lines = tuple(_record_lines(record, source.installed))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        digests = dict(
            zip((line.path for line in lines), pool.map(lambda line: _digest(top / line.path), lines), strict=True)
        )
    problems = [*_declared(found, source, record), *_differences(lines, digests, top), *_unlisted(record, top)]
    if problems:
        raise DirtySource(_capped(problems, source.installed))
    return FrozenInstalledSource(
        kind="installed",
        name=source.installed,
        version=found.version,
        record_sha256=sha256_hex(record),
        files_dirhash=dirhash({line.path: line.sha256 for line in lines}),
        files=len(lines),
    )


def installed_package(facts: InterpreterFacts, source: InstalledSource) -> InstalledPackage:
    """Where the files of an installed package lie, RECORD included.

    Raises:
        DirtySource: there is no such package, or it has no RECORD (INSTALLED_DRIFT).
    """
    found = _find(facts, source)
    record = _record_bytes(found, source)
    top = Path(str(found.locate_file(""))).resolve()
    listed = tuple(top / path for path in _listed(record) if not path.endswith(".pyc"))
    return InstalledPackage(listed, tuple(top / package for package in sorted(_packages(record))))


def _find(facts: InterpreterFacts, source: InstalledSource) -> Distribution:
    found = facts.find(source.installed)
    if found is None:
        raise DirtySource(_drift(str(facts.path), f"{source.installed} installed", "no such package", _REINSTALL))
    if _is_editable(found):
        do = "declare its work tree as a `git` source, or install it from a wheel"
        raise DirtySource(_drift(source.installed, "installed files", "an editable install", do))
    return found


def _is_editable(found: Distribution) -> bool:
    text = found.read_text("direct_url.json")
    origin = json.loads(text) if text else {}
    return bool(origin.get("dir_info", {}).get("editable", False))


def _record_bytes(found: Distribution, source: InstalledSource) -> bytes:
    for file in found.files or ():
        if file.name == "RECORD" and file.parent.suffix == ".dist-info":
            return Path(str(found.locate_file(file))).read_bytes()
    raise DirtySource(_drift(source.installed, "a RECORD that lists itself", "none", _REINSTALL))


def _record_lines(record: bytes, name: str) -> Iterator[RecordLine]:
    for path, coded, _size in csv.reader(record.decode().splitlines()):
        if not coded:
            continue  # RECORD itself, and byte code that the installer made
        algorithm, _, text = coded.partition("=")
        if algorithm != "sha256":
            raise DirtySource(_drift(f"{name}: {path}", "a sha256 digest", algorithm, _REINSTALL))
        yield RecordLine(path, base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex())


def _digest(path: Path) -> str | None:
    try:
        return sha256_file(path)[0]
    except OSError:
        return None


def _declared(found: Distribution, source: InstalledSource, record: bytes) -> Iterator[Problem]:
    if found.version != source.version:
        yield _drift(source.installed, f"version {source.version}", found.version, "install the registered version")
    if source.record_sha256 not in (None, sha256_hex(record)):
        yield _drift(f"{source.installed}: RECORD", str(source.record_sha256), sha256_hex(record), _REINSTALL)


def _differences(lines: tuple[RecordLine, ...], digests: dict[str, str | None], top: Path) -> Iterator[Problem]:
    for line in lines:
        got = digests[line.path]
        if got != line.sha256:
            yield _drift(str(top / line.path), line.sha256, got or "no readable file", _REINSTALL)


def _unlisted(record: bytes, top: Path) -> Iterator[Problem]:
    """Code in the package's own folders that RECORD does not list."""
    listed = set(_listed(record))
    for file in sorted(_code_files(record, top)):
        if file.relative_to(top).as_posix() not in listed:
            yield _drift(str(file), "only files that RECORD lists", "a file beside them", f"remove it, or {_REINSTALL}")


def _code_files(record: bytes, top: Path) -> Iterator[Path]:
    """Code in the package's own folders; a namespace folder belongs to others too."""
    for package in _packages(record):
        yield from (file for file in (top / package).rglob("*") if file.suffix in CODE_SUFFIXES and file.is_file())


def _packages(record: bytes) -> set[str]:
    listed = _listed(record)
    return {path.partition("/")[0] for path in listed if path.count("/") == 1 and path.endswith("/__init__.py")}


def _listed(record: bytes) -> list[str]:
    return [path for path, *_rest in csv.reader(record.decode().splitlines())]


def _drift(where: str, expected: str, got: str, do: str) -> Problem:
    return Problem(Code.INSTALLED_DRIFT, where, expected, got, do)


def _capped(problems: list[Problem], name: str) -> list[Problem]:
    rest = len(problems) - MAX_NAMED
    if rest <= 0:
        return problems
    return [*problems[:MAX_NAMED], _drift(name, "files as RECORD lists them", f"{rest} more that differ", _REINSTALL)]
