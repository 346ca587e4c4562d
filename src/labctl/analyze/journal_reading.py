"""The steps of a run and how it ended, read from its files."""

from labctl.analyze.evidence import conflict
from labctl.analyze.record_reader import RecordReader
from labctl.digest import sha256_hex
from labctl.errors import MalformedRecord
from labctl.protocol import Event
from labctl.records.run import JournalEntry, Outcome, OutcomeKind
from labctl.records.seal import SealOutcome


def read_outcome(reader: RecordReader, sealed: SealOutcome | None, journal: tuple[JournalEntry, ...]) -> Outcome | None:
    """How the run ended; what another process sealed is aborted, whatever its controller had written."""
    if sealed is None or sealed.outcome is not OutcomeKind.ABORTED:
        return reader.record("outcome.json", Outcome, because=None if sealed is None else "every sealed run has one")
    written = reader.leniently().record("outcome.json", Outcome, because=None)
    if written is not None and written.outcome is OutcomeKind.ABORTED:
        return written
    closed = tuple(entry.leg for entry in journal if entry.event is Event.LEG_CLOSED and entry.leg is not None)
    return Outcome(outcome=OutcomeKind.ABORTED, cause=sealed.cause, detail=sealed.detail, legs_closed=closed)


def read_journal(reader: RecordReader, *, may_be_torn: bool) -> tuple[JournalEntry, ...]:
    """The steps, as far as their chain holds; only the last line of an aborted run may be torn."""
    because = None if may_be_torn else "every run has a journal"
    data = reader.bytes_of("journal.jsonl", because=because) or b""
    entries: list[JournalEntry] = []
    previous = sha256_hex(b"")
    for number, line in enumerate(data.splitlines(keepends=True)):
        if may_be_torn and not line.endswith(b"\n"):
            break  # the controller was killed while it wrote this line; the line stays as evidence of that
        where = f"data/journal.jsonl:{number + 1}"
        try:
            entry = JournalEntry.from_json(line, where)
        except MalformedRecord as error:
            reader.problems.extend(error.problems)
            break
        if (entry.seq, entry.prev) != (number, previous) or entry.canonical() != line:
            reader.problems.append(
                conflict(where, f"entry {number} after {previous}", f"{entry.seq} after {entry.prev}")
            )
        entries.append(entry)
        previous = sha256_hex(line)
    return tuple(entries)
