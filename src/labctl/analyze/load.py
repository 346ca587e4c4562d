"""From the files of a run to its evidence; only what nothing can be said without is raised, the rest is collected."""

from dataclasses import dataclass, field, replace
from typing import TypeVar

from labctl.analyze.counters import Counters, parse_counters
from labctl.analyze.evidence import LegEvidence, RunEvidence, conflict
from labctl.analyze.files import EvidenceFiles, leg_manifest_problems, require_readable
from labctl.analyze.leg_conflicts import leg_conflicts
from labctl.analyze.run_conflicts import journal_conflicts, packet_conflicts, phase_conflicts
from labctl.analyze.stream import StreamRow, read_row
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import LabctlError, MalformedRecord, Problem
from labctl.frozen import FrozenModel, canonical_json
from labctl.packet.model import Packet
from labctl.prereg.model import Arm, TeacherOracle
from labctl.prereg.strict_yaml import read_yaml
from labctl.prereg.suite import Oracle, Suite
from labctl.records.leg import LegExit, Postflight, ProcessRecord
from labctl.records.marker import Marker
from labctl.records.order import LegStarted, WorkOrder
from labctl.records.run import JournalEntry, Outcome, OutcomeKind, PhaseAnswer
from labctl.records.wire import WireRow, read_wire_row

ModelT = TypeVar("ModelT", bound=FrozenModel)


@dataclass(slots=True)
class RecordReader:
    """Reads records by name and collects what is wrong with them."""

    files: EvidenceFiles
    names: frozenset[str]
    problems: list[Problem] = field(default_factory=list)

    def bytes_of(self, name: str, *, because: str | None) -> bytes | None:
        """The bytes of a file; where it is absent, a problem if `because` says why it must be there."""
        if name in self.names:
            try:
                return self.files.read(name)
            except LabctlError as error:
                self.problems.extend(error.problems)
        elif because is not None:
            self.problems.append(
                Problem(Code.MISSING_FILE, f"data/{name}", f"a file: {because}", "nothing", "restore it from a copy")
            )
        return None

    def record(self, name: str, model: type[ModelT], *, because: str | None) -> ModelT | None:
        """One record, or None where it is absent or malformed."""
        data = self.bytes_of(name, because=because)
        if data is None:
            return None
        try:
            record = model.from_json(data, f"data/{name}")
        except MalformedRecord as error:
            self.problems.extend(error.problems)
            return None
        if record.canonical() != data:
            self.problems.append(conflict(f"data/{name}", "the canonical form of the record", "another form"))
        return record

    def counters(self, name: str, engine: EngineVocabulary, *, because: str | None) -> Counters | None:
        """The counters of one file."""
        data = self.bytes_of(name, because=because)
        try:
            return None if data is None else parse_counters(data, engine, f"data/{name}")
        except MalformedRecord as error:
            self.problems.extend(error.problems)
            return None


def load_evidence(files: EvidenceFiles) -> RunEvidence:
    """Everything that a run's files say, with every contradiction between them.

    Raises:
        BrokenEvidence: packet, marker, vocabulary or suite cannot be read, so that nothing can be judged.
    """
    reader = RecordReader(files, frozenset(files.names()))
    packet_bytes = require_readable(files, "packet/packet.json")
    marker_bytes = require_readable(files, "packet/marker.copy.json")
    engine_bytes = require_readable(files, "packet/engine.json")
    packet = Packet.from_json(packet_bytes, "data/packet/packet.json")
    outcome = reader.record("outcome.json", Outcome, because=None)
    evidence = RunEvidence(
        packet=packet,
        packet_id=sha256_hex(packet_bytes),
        marker=Marker.from_json(marker_bytes, "data/packet/marker.copy.json"),
        marker_sha256=sha256_hex(marker_bytes),
        engine=EngineVocabulary.from_json(engine_bytes, "data/packet/engine.json"),
        suite=_suite(files),
        oracle=_oracle(reader, packet),
        legs=(),
        journal=_journal(reader, is_aborted=outcome is not None and outcome.outcome is OutcomeKind.ABORTED),
        outcome=outcome,
        answers=_answers(reader),
        conflicts=(),
    )
    reader.problems += packet_conflicts(evidence, files)
    evidence = replace(evidence, legs=_legs(reader, evidence))
    for leg in evidence.legs:
        reader.problems += leg_conflicts(evidence, leg)
    reader.problems += [*journal_conflicts(evidence), *phase_conflicts(evidence)]
    return replace(evidence, conflicts=tuple(dict.fromkeys(reader.problems)))


def _suite(files: EvidenceFiles) -> Suite:
    where = "data/packet/inputs/suite.yaml"
    document = read_yaml(require_readable(files, "packet/inputs/suite.yaml"), where)
    if document.problems:
        raise MalformedRecord(document.problems)
    return Suite.from_json(canonical_json(document.tree), where)


def _oracle(reader: RecordReader, packet: Packet) -> Oracle | None:
    if not isinstance(packet.preregistration.oracle, TeacherOracle):
        return None
    name = "packet/inputs/oracle.json"
    data = reader.bytes_of(name, because="the preregistration names a teacher")
    try:
        return None if data is None else Oracle.from_json(data, f"data/{name}")
    except MalformedRecord as error:
        reader.problems.extend(error.problems)
        return None


def _journal(reader: RecordReader, *, is_aborted: bool) -> tuple[JournalEntry, ...]:
    data = reader.bytes_of("journal.jsonl", because="every run has a journal") or b""
    entries: list[JournalEntry] = []
    previous = sha256_hex(b"")
    for number, line in enumerate(data.splitlines(keepends=True)):
        if is_aborted and not line.endswith(b"\n"):
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


def _answers(reader: RecordReader) -> tuple[PhaseAnswer, ...]:
    found = [
        reader.record(name, PhaseAnswer, because=None) for name in sorted(reader.names) if name.startswith("phase1/")
    ]
    return tuple(answer for answer in found if answer is not None)


def _legs(reader: RecordReader, evidence: RunEvidence) -> tuple[LegEvidence, ...]:
    present = sorted({name.split("/")[1] for name in reader.names if name.startswith("legs/")})
    planned = [f"{index:02d}-{leg}" for index, leg in enumerate(evidence.packet.order, start=1)]
    strangers = [folder for folder in present if folder not in planned]
    reader.problems += [conflict(f"data/legs/{folder}", f"one of {planned}", folder) for folder in strangers]
    return tuple(_leg(reader, evidence, index) for index, folder in enumerate(planned, start=1) if folder in present)


def _leg(reader: RecordReader, evidence: RunEvidence, index: int) -> LegEvidence:
    name = evidence.packet.order[index - 1]
    folder = f"{index:02d}-{name}"
    at = f"legs/{folder}"
    digest, problems = leg_manifest_problems(reader.files, folder)
    reader.problems += problems
    if digest is None and evidence.outcome is not None and evidence.outcome.outcome is OutcomeKind.ABORTED:
        reader = RecordReader(reader.files, reader.names)  # a leg that was killed may have left half a file
    # A leg that failed holds what it reached; one that completed holds everything.
    leg_exit = reader.record(f"{at}/exit.json", LegExit, because="the leg is closed" if digest else None)
    because = "the leg completed" if leg_exit is not None and leg_exit.cause.value == "completed" else None
    order_bytes = reader.bytes_of(f"{at}/order.json", because=because)
    wires = _wires(reader, at)
    return LegEvidence(
        folder=folder,
        name=name,
        arm=Arm.of_leg(name),
        index=index,
        is_closed=digest is not None,
        manifest_sha256=digest,
        order=reader.record(f"{at}/order.json", WorkOrder, because=None),
        order_sha256=None if order_bytes is None else sha256_hex(order_bytes),
        started=reader.record(f"{at}/LEG_STARTED.json", LegStarted, because=because),
        process=reader.record(f"{at}/process.json", ProcessRecord, because=because),
        postflight=reader.record(f"{at}/postflight.json", Postflight, because=because),
        exit=leg_exit,
        before=reader.counters(f"{at}/metrics-before.prom", evidence.engine, because=because),
        after=reader.counters(f"{at}/metrics-after.prom", evidence.engine, because=because),
        log=reader.bytes_of(f"{at}/server.log", because=because),
        maps=_maps(reader, at, because),
        wires=wires,
        rows=_rows(wires),
    )


def _maps(reader: RecordReader, at: str, because: str | None) -> tuple[str, ...] | None:
    data = reader.bytes_of(f"{at}/maps.txt", because=because)
    return None if data is None else tuple(data.decode("utf-8", "backslashreplace").splitlines())


def _wires(reader: RecordReader, at: str) -> tuple[WireRow, ...]:
    stems = sorted(
        name.removeprefix(f"{at}/wire/").removesuffix(".reads.jsonl")
        for name in reader.names
        if name.startswith(f"{at}/wire/") and name.endswith(".reads.jsonl")
    )
    wires: list[WireRow] = []
    for stem in stems:
        reads = reader.bytes_of(f"{at}/wire/{stem}.reads.jsonl", because="it is listed")
        received = reader.bytes_of(f"{at}/wire/{stem}.bin", because="its stamps are there")
        if reads is None or received is None:
            continue
        try:
            wires.append(read_wire_row(reads, received, f"data/{at}/wire/{stem}"))
        except MalformedRecord as error:
            reader.problems.extend(error.problems)
    return tuple(sorted(wires, key=lambda wire: wire.opened.row))


def _rows(wires: tuple[WireRow, ...]) -> tuple[StreamRow, ...]:
    return tuple(read_row(wire) for wire in wires)
