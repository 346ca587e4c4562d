"""Seal a run whose controller was killed: as aborted, adding what is missing and overwriting nothing."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import AppendLog, complete_once, make_folders, read_regular, write_once
from labctl.errors import BrokenEvidence, LabctlError, Problem, Refused
from labctl.protocol import Event
from labctl.records.marker import Marker
from labctl.records.order import LegStarted
from labctl.records.run import NOTHING_SHA256, AbortCause, JournalEntry, Outcome, OutcomeKind
from labctl.records.seal import SealOutcome
from labctl.rundir import PacketPaths, RunPaths
from labctl.seal.verify import SealedRun, SealState, seal_state
from labctl.seal.write import remove_empty_folders, seal_payload

MAX_DOCUMENT_BYTES = 64 << 20
_CLOSING = (Event.RUN_CLOSED, Event.RUN_ABORTED)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Abortion:
    """Why and when a run is sealed from outside."""

    detail: str
    """One line: who does it and why."""
    prev_ledger_sha256: str
    """The digest of the ledger's last line."""
    clock: Clock
    """The clock that labels the journal's last entry."""


@dataclass(frozen=True, slots=True)
class _Journal:
    """What can be read of a journal, and why no more."""

    entries: tuple[JournalEntry, ...]
    last_sha256: str
    fault: str | None


def seal_aborted(root: Path, abortion: Abortion) -> SealedRun:
    """Seal a run that has its packet and marker but no seal, and that nobody works on any more.

    Raises:
        Refused: it is sealed already (EXISTS), or its controller or a leg still lives (LEFTOVER).
        BrokenEvidence: the packet or marker copy is missing, a file cannot be sealed, or what an earlier sealing
            left is not what is computed now.
    """
    paths = RunPaths(root.resolve())
    _require_unsealed(paths)
    marker_bytes = read_regular(paths.packet / "marker.copy.json", limit_bytes=MAX_DOCUMENT_BYTES)
    _require_nobody(paths, Marker.from_json(marker_bytes, "data/packet/marker.copy.json"))
    if not os.path.lexists(paths.layout):  # once a layout is there, the payload is closed
        _close_payload(paths, abortion)
    notes = remove_empty_folders(paths)
    return seal_payload(paths, _claim(paths, abortion, notes), abortion.prev_ledger_sha256)


def restore_copies(root: Path, packet: PacketPaths, marker_bytes: bytes) -> None:
    """Put the packet's files and the marker into a run whose controller died before it had copied them.

    The folder itself is made where the controller had not come that far.

    Raises:
        Refused: the run is sealed already (EXISTS), or its controller or a leg still lives (LEFTOVER).
        BrokenEvidence: a copy that is there is not the beginning of its original (EXISTS).
    """
    paths = RunPaths(root)
    _require_unsealed(paths)
    _require_nobody(paths, Marker.from_json(marker_bytes, "the marker"))
    make_folders(paths.packet)
    for source in (path for path in (packet.packet, packet.prereg, packet.engine) if path.exists()):
        complete_once(paths.packet / source.name, read_regular(source, limit_bytes=MAX_DOCUMENT_BYTES))
    complete_once(paths.packet / "marker.copy.json", marker_bytes)
    for folder in (packet.inputs, packet.approvals):
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        if files:
            make_folders(paths.packet / folder.name)
        for file in files:
            complete_once(paths.packet / folder.name / file.name, read_regular(file, limit_bytes=MAX_DOCUMENT_BYTES))


def _require_unsealed(paths: RunPaths) -> None:
    if seal_state(paths.root) is not SealState.UNSEALED:
        raise Refused(
            Problem(Code.EXISTS, str(paths.seal), "a run without a seal", "a seal", "use `labctl seal verify RUN`")
        )


def _require_nobody(paths: RunPaths, marker: Marker) -> None:
    boot_id = _BOOT_ID.read_text().strip()
    owners = [("the controller", marker.host.controller_pid, marker.host.controller_start_ticks, marker.host.boot_id)]
    for claim in sorted(paths.legs.glob("*/LEG_STARTED.json")):
        with contextlib.suppress(LabctlError):  # a torn claim names nobody; its leg then shows as an open writer
            started = LegStarted.from_json(read_regular(claim, limit_bytes=MAX_DOCUMENT_BYTES), claim.name)
            owners.append((f"leg {started.leg}", started.pid, started.start_ticks, started.boot_id))
    problems = [
        Problem(Code.LEFTOVER, f"process {pid}", "a run on which nobody works", f"{who}, alive", "end it first")
        for who, pid, ticks, boot in owners
        if boot == boot_id and _start_ticks(pid) == ticks
    ]
    if problems:
        raise Refused(problems)


def _start_ticks(pid: int) -> int | None:
    """When a living process started, in clock ticks since boot; None where there is none, or only its remains."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    is_over = after_name[0] in ("Z", "X") and int(after_name[17]) <= 1  # its first thread may end before the others
    return None if is_over else int(after_name[19])


def _close_payload(paths: RunPaths, abortion: Abortion) -> None:
    journal = _read_journal(paths)
    is_open = not journal.entries or journal.entries[-1].event not in _CLOSING
    if journal.fault is None and is_open:
        _append_abort(paths, journal, abortion)
    if os.path.lexists(paths.outcome):
        return
    fault = () if journal.fault is None else (f"journal.jsonl was left as it is: {journal.fault}",)
    outcome = Outcome(
        outcome=OutcomeKind.ABORTED,
        cause=AbortCause.CONTROLLER_KILLED,
        detail=(abortion.detail, *fault),
        legs_closed=tuple(entry.leg for entry in journal.entries if entry.event is Event.LEG_CLOSED and entry.leg),
    )
    write_once(paths.outcome, outcome.canonical())


def _read_journal(paths: RunPaths) -> _Journal:
    if not os.path.lexists(paths.journal):
        return _Journal((), NOTHING_SHA256, None)
    lines = read_regular(paths.journal, limit_bytes=MAX_DOCUMENT_BYTES).splitlines(keepends=True)
    entries: list[JournalEntry] = []
    last = NOTHING_SHA256
    for number, line in enumerate(lines):
        fault = _line_fault(line, number, last, entries)
        if fault is not None:
            return _Journal(tuple(entries), last, f"line {number + 1} {fault}")
        last = sha256_hex(line)
    return _Journal(tuple(entries), last, None)


def _line_fault(line: bytes, number: int, last: str, entries: list[JournalEntry]) -> str | None:
    if not line.endswith(b"\n"):
        return "is torn"
    try:
        entry = JournalEntry.from_json(line, "journal.jsonl")
    except BrokenEvidence:
        return "is not a journal entry"
    if (entry.seq, entry.prev) != (number, last):
        return "does not follow the line before"
    entries.append(entry)
    return None


def _append_abort(paths: RunPaths, journal: _Journal, abortion: Abortion) -> None:
    entry = JournalEntry(
        seq=len(journal.entries),
        prev=journal.last_sha256,
        event=Event.RUN_ABORTED,
        leg=None,
        detail=abortion.detail,
        wall_ns=abortion.clock.realtime_ns(),
        mono_ns=abortion.clock.monotonic_ns(),
    )
    with AppendLog.reopen(paths.journal) if os.path.lexists(paths.journal) else AppendLog.create(paths.journal) as log:
        log.append(entry.canonical())


def _claim(paths: RunPaths, abortion: Abortion, notes: tuple[str, ...]) -> SealOutcome:
    """What the seal says: the run's own word where that is an abort, else that its controller was killed."""
    try:
        written = Outcome.from_json(read_regular(paths.outcome, limit_bytes=MAX_DOCUMENT_BYTES), "data/outcome.json")
    except BrokenEvidence:
        torn = (abortion.detail, "outcome.json is torn")
        return SealOutcome(outcome=OutcomeKind.ABORTED, cause=AbortCause.CONTROLLER_KILLED, detail=torn + notes)
    if written.outcome is OutcomeKind.ABORTED:
        return SealOutcome(outcome=written.outcome, cause=written.cause, detail=written.detail + notes)
    detail = (*written.detail, abortion.detail, f"outcome.json says {written.outcome}")
    return SealOutcome(outcome=OutcomeKind.ABORTED, cause=AbortCause.CONTROLLER_KILLED, detail=detail + notes)
