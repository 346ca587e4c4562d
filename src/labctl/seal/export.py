"""A copy of a sealed run for others to see: names replaced, bytes taken out, and every difference told.

The original is immutable and stays private. The copy has its own record and manifest and no seal, so nothing can take
it for the run; whoever is shown the original can hold each unchanged file against the original's manifest in the copy.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_hex
from labctl.durable import make_folder, make_folders, write_once
from labctl.errors import Problem, Refused
from labctl.frozen import strict_json
from labctl.records.export import ChangedFile, ExportRecord, MappedName, Original, Redaction
from labctl.records.run import HostIdentity
from labctl.rundir import MANIFEST
from labctl.seal.verify import SealedRun

RECORD = "EXPORT.json"
ORIGINAL_MANIFEST = "original-manifest-sha256.txt"
FILES = "files-sha256.txt"
MIN_NAME_BYTES = 3
FILLER = b"#"
_RANGE = re.compile(r"(.+?)(?::([0-9]{1,12})-([0-9]{1,12}))?")
_TOP_PARTS = 2  # `/` and a folder that every machine has
_TELLING_NOTHING = ("host", "localhost")


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is copied, and what is not told."""

    run: SealedRun
    """The run, verified."""
    target: Path
    """The copy's folder, which must not exist."""
    reason: str
    """One line."""
    names: Mapping[str, str]
    """Names and what replaces them, beside those that the run itself tells."""
    redactions: tuple[Redaction, ...]
    """Bytes to take out."""


def export_run(request: ExportRequest) -> ExportRecord:
    """Write the copy.

    Raises:
        Refused: a name is too short or stays in its replacement, a range is not there, or the target is.
    """
    names = {**_own_names(request.run), **request.names}
    if problems := [*_name_problems(names), *_range_problems(request)]:
        raise Refused(problems)
    make_folders(request.target.parent)
    make_folder(request.target)
    places = dict.fromkeys(names, 0)
    before = {path: request.run.read(path) for path in request.run.names()}
    after = {path: _told(path, data, request.redactions, (names, places)) for path, data in before.items()}
    record = ExportRecord(
        original=_original(request.run),
        reason=request.reason,
        names=tuple(MappedName(replacement=names[name], places=places[name]) for name in names if places[name]),
        redactions=request.redactions,
        changed=tuple(
            ChangedFile(path=path, original_sha256=sha256_hex(before[path]), sha256=sha256_hex(data))
            for path, data in after.items()
            if data != before[path]
        ),
    )
    _write(request, after, record)
    return record


def named_replacement(text: str) -> tuple[str, str]:
    """A name and what replaces it, as written on the command line: `NAME=REPLACEMENT`.

    Raises:
        Refused: there is no `=` in it.
    """
    name, sign, shown = text.rpartition("=")
    if not sign:
        raise Refused(Problem(Code.WRONG_VALUE, "--map", "NAME=REPLACEMENT", text, "write both"))
    return name, shown


def named_range(run: SealedRun, text: str) -> Redaction:
    """Bytes to take out, as written on the command line: `PATH`, all of it, or `PATH:START-END`.

    Raises:
        Refused: no such file, or a range in another form.
    """
    found = _RANGE.fullmatch(text)
    path = "" if found is None else found[1].removeprefix("data/")
    if found is None or path not in run.names():
        do = "name a file of the run below data/, and its bytes as START-END"
        raise Refused(Problem(Code.WRONG_VALUE, "--redact", "PATH or PATH:START-END", text, do))
    size = len(run.read(path))
    return Redaction(path=path, start=int(found[2] or 0), end=size if found[3] is None else int(found[3]))


def _original(run: SealedRun) -> Original:
    packet = run.statement.predicate.external_parameters.packet_sha256
    return Original(run_dir=run.run_dir, seal_sha256=run.seal_sha256, root_sha256=run.root_sha256, packet_sha256=packet)


def _own_names(run: SealedRun) -> dict[str, str]:
    """The machine's name and the folders of its owner, as the run itself tells them."""
    names: dict[str, str] = {}
    orders = [path for path in run.names() if path.startswith("legs/") and path.endswith("/order.json")]
    for path in orders[:1]:
        names |= _own_folders(strict_json(run.read(path), path).get("paths", {}), run.run_dir)
    if "host/identity.json" in run.names():
        hostname = HostIdentity.from_json(run.read("host/identity.json"), "host/identity.json").hostname
        names |= {} if hostname in _TELLING_NOTHING or len(hostname) < MIN_NAME_BYTES else {hostname: "machine-1"}
    return names


def _own_folders(paths: Mapping[str, str], run_dir: str) -> dict[str, str]:
    """The roots of runs and of private folders, and what holds both: the folder that the campaign lies in."""
    runs = PurePosixPath(paths.get("leg", "/").partition(f"/{run_dir}/")[0])
    scratch = PurePosixPath(paths.get("scratch", "/")).parent.parent
    both = PurePosixPath(os.path.commonpath([runs, scratch]))
    named = {both: "/lab", runs: "/runs", scratch: "/scratch"}
    return {str(place): shown for place, shown in named.items() if len(place.parts) > _TOP_PARTS}


def _told(
    path: str, data: bytes, redactions: tuple[Redaction, ...], mapping: tuple[Mapping[str, str], dict[str, int]]
) -> bytes:
    names, places = mapping
    for one in (one for one in redactions if one.path == path):
        data = data[: one.start] + FILLER * (one.end - one.start) + data[one.end :]
    for name in sorted(names, key=len, reverse=True):  # a folder before the folder that holds it
        places[name] += data.count(name.encode())
        data = data.replace(name.encode(), names[name].encode())
    return data


def _write(request: ExportRequest, files: Mapping[str, bytes], record: ExportRecord) -> None:
    root, digests = request.target, {f"data/{path}": sha256_hex(data) for path, data in files.items()}
    for folder in sorted({parent for path in digests for parent in (root / path).parents if root in parent.parents}):
        make_folder(folder)
    for path, data in files.items():
        write_once(root / "data" / path, data)
    manifest = (request.run.root / MANIFEST).read_bytes()
    for name, data in ((ORIGINAL_MANIFEST, manifest), (RECORD, record.canonical())):
        write_once(root / name, data)
        digests[name] = sha256_hex(data)
    write_once(root / FILES, manifest_lines(digests))


def _name_problems(names: Mapping[str, str]) -> Iterator[Problem]:
    for name, shown in names.items():
        if len(name.encode()) < MIN_NAME_BYTES:
            got, do = f"{len(name)} characters", "map a longer text: a short one stands everywhere"
            yield Problem(Code.WRONG_VALUE, "a name to replace", f"at least {MIN_NAME_BYTES} bytes", got, do)
        elif any(other in shown for other in names):
            do = "choose a word that tells nothing"
            yield Problem(Code.WRONG_VALUE, f"replacement {shown}", "no name that is replaced", "one of them", do)


def _range_problems(request: ExportRequest) -> Iterator[Problem]:
    known = set(request.run.names())
    for one in request.redactions:
        size = len(request.run.read(one.path)) if one.path in known else 0
        if not one.start < one.end <= size:
            got, do = f"bytes {one.start} to {one.end}", "name a file of the run, and bytes of it"
            yield Problem(Code.WRONG_VALUE, f"data/{one.path}", f"bytes among its {size}", got, do)
