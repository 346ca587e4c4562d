"""From the files of a run to its evidence; only what nothing can be said without is raised, the rest is collected."""

from dataclasses import replace

from labctl.analyze.evidence import LegEvidence, RunEvidence, conflict
from labctl.analyze.files import EvidenceFiles, require_readable
from labctl.analyze.leg_conflicts import leg_conflicts
from labctl.analyze.load_leg import load_leg
from labctl.analyze.record_reader import RecordReader
from labctl.analyze.run_conflicts import journal_conflicts, packet_conflicts, phase_conflicts
from labctl.digest import sha256_hex
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import MalformedRecord
from labctl.frozen import canonical_json
from labctl.packet.model import Packet
from labctl.prereg.model import TeacherOracle
from labctl.prereg.strict_yaml import read_yaml
from labctl.prereg.suite import Oracle, Suite
from labctl.records.marker import Marker
from labctl.records.run import JournalEntry, Outcome, OutcomeKind, PhaseAnswer


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
    return tuple(
        load_leg(reader, evidence, index) for index, folder in enumerate(planned, start=1) if folder in present
    )
