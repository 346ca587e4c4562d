"""The ledger: one hash-chained line for every consumption and every seal, the second witness beside the markers."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import FILE_MODE, AppendLog, make_folders, read_regular, sync_folder
from labctl.errors import BrokenEvidence, Problem
from labctl.records.marker import LedgerLine
from labctl.records.run import NOTHING_SHA256

MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """What a new line says."""

    event: Literal["consumed", "sealed"]
    packet_sha256: str
    campaign: str
    run_dir: str
    digest: str
    wall_ns: int
    lane_sha256: str | None = None


def read_ledger(path: Path) -> tuple[LedgerLine, ...]:
    """Every line of a ledger, its chain verified; nothing where there is no file.

    Raises:
        BrokenEvidence: a line is torn, malformed, or does not follow the one before (LEDGER_BROKEN).
    """
    return tuple(line for line, _ in _read_shared(path))


def append_ledger(path: Path, event: LedgerEvent) -> str:
    """Add one line, on disk when this returns; its digest.

    Raises:
        BrokenEvidence: the ledger is broken (LEDGER_BROKEN) or could not be written (WRITE_FAILED).
    """
    make_folders(path.parent)
    with _locked(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as descriptor:
        os.fchmod(descriptor, FILE_MODE)
        sync_folder(path.parent)
        before = _read(path)
        line = LedgerLine(
            seq=len(before),
            prev=before[-1][1] if before else NOTHING_SHA256,
            event=event.event,
            packet_sha256=event.packet_sha256,
            campaign=event.campaign,
            run_dir=event.run_dir,
            digest=event.digest,
            wall_ns=event.wall_ns,
            lane_sha256=event.lane_sha256,
        ).canonical()
        with AppendLog.reopen(path) as log:
            log.append(line)
    return sha256_hex(line)


def last_digest(path: Path) -> str:
    """The digest of the last line, or of nothing.

    Raises:
        BrokenEvidence: the ledger is broken (LEDGER_BROKEN).
    """
    before = _read_shared(path)
    return before[-1][1] if before else NOTHING_SHA256


def find_consumed(path: Path, packet_id: str) -> LedgerLine | None:
    """The line that says that a packet was consumed, if there is one.

    Raises:
        BrokenEvidence: the ledger is broken (LEDGER_BROKEN).
    """
    lines = read_ledger(path)
    return next((line for line in lines if line.event == "consumed" and line.packet_sha256 == packet_id), None)


@contextmanager
def _locked(path: Path, mode: int, lock: int) -> Iterator[int]:
    """The ledger, for one writer or for any number of readers at a time."""
    try:
        descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise BrokenEvidence(_broken(str(path), os.strerror(error.errno or 0))) from error
    try:
        fcntl.flock(descriptor, lock)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_shared(path: Path) -> list[tuple[LedgerLine, str]]:
    """As `_read`, while nobody writes: half a line is not to be seen."""
    if not os.path.lexists(path):
        return []
    with _locked(path, os.O_RDONLY, fcntl.LOCK_SH):
        return _read(path)


def _read(path: Path) -> list[tuple[LedgerLine, str]]:
    """Each line with its digest."""
    try:
        data = read_regular(path, limit_bytes=MAX_BYTES)
    except BrokenEvidence as error:
        raise BrokenEvidence(_broken(str(path), problem.got) for problem in error.problems) from error
    lines: list[tuple[LedgerLine, str]] = []
    for number, raw in enumerate(data.splitlines(keepends=True), start=1):
        lines.append((_parse(raw, f"{path}:{number}", lines), sha256_hex(raw)))
    return lines


def _parse(raw: bytes, where: str, before: list[tuple[LedgerLine, str]]) -> LedgerLine:
    try:
        line = LedgerLine.from_json(raw, where)
    except BrokenEvidence as error:
        raise BrokenEvidence(_broken(where, problem.got) for problem in error.problems) from error
    if line.canonical() != raw:
        raise BrokenEvidence(_broken(where, "a torn line, or one in another byte form"))
    if (line.seq, line.prev) != (len(before), before[-1][1] if before else NOTHING_SHA256):
        raise BrokenEvidence(_broken(where, "a line that does not follow the one before"))
    return line


def _broken(where: str, got: str) -> Problem:
    return Problem(Code.LEDGER_BROKEN, where, "an unbroken chain of lines", got, "restore the ledger from its mirror")
