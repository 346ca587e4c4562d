"""From the files of a run to its evidence; only what nothing can be said without is raised, the rest is collected."""

from dataclasses import replace

from labctl.analyze.binary_sets import read_binary_sets
from labctl.analyze.endpoint_packet import read_endpoint_packet
from labctl.analyze.evidence import LegEvidence, RunEvidence, conflict
from labctl.analyze.files import EvidenceFiles, require_readable
from labctl.analyze.host_conflicts import copy_conflicts, host_conflicts
from labctl.analyze.journal_reading import read_journal, read_outcome
from labctl.analyze.leg_conflicts import leg_conflicts
from labctl.analyze.load_leg import load_leg
from labctl.analyze.record_reader import RecordReader
from labctl.analyze.run_conflicts import journal_conflicts, packet_conflicts, phase_conflicts, pinned_conflicts
from labctl.digest import sha256_hex
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import MalformedRecord
from labctl.frozen import canonical_json
from labctl.packet.model import EndpointPacket
from labctl.prereg.model import TeacherOracle
from labctl.prereg.noise import NoiseRecord, noise_findings
from labctl.prereg.strict_yaml import read_yaml
from labctl.prereg.suite import Oracle, Suite
from labctl.protocol import Event
from labctl.records.marker import Marker
from labctl.records.run import HostIdentity, OutcomeKind, PhaseAnswer
from labctl.records.seal import SealOutcome

NOISE = "packet/inputs/noise.json"


def load_evidence(files: EvidenceFiles, sealed: SealOutcome | None = None) -> RunEvidence:
    """Everything that a run's files say, with every contradiction between them.

    Args:
        files: the run.
        sealed: how the run ended, as its seal says; None for a run that still goes on.

    Raises:
        BrokenEvidence: packet, marker, vocabulary or suite cannot be read, so that nothing can be judged.
    """
    reader = RecordReader(files, frozenset(files.names()))
    is_aborted = sealed is not None and sealed.outcome is OutcomeKind.ABORTED
    has_legs = any(name.startswith("legs/") for name in reader.names)
    evidence = _opened(reader, is_bare=is_aborted and not has_legs)
    journal = read_journal(reader, may_be_torn=is_aborted)
    evidence = replace(evidence, journal=journal, outcome=read_outcome(reader, sealed, journal))
    reader.problems += host_conflicts(reader, evidence)
    host, noise = _told(reader, evidence.packet)
    evidence = replace(evidence, host=host, noise=noise)
    evidence = replace(evidence, answers=_answers(reader, evidence))
    evidence = replace(evidence, legs=_legs(reader, evidence))
    for leg in evidence.legs:
        if not evidence.was_cut_short(leg.name):
            reader.problems += leg_conflicts(evidence, leg)
    reader.problems += [*journal_conflicts(evidence), *phase_conflicts(evidence)]
    return replace(evidence, conflicts=tuple(dict.fromkeys(reader.problems)))


def _opened(reader: RecordReader, *, is_bare: bool) -> RunEvidence:
    """What was there before the first leg; where the controller was killed even earlier, as far as it had come."""
    packet_bytes = require_readable(reader.files, "packet/packet.json")
    marker_bytes = require_readable(reader.files, "packet/marker.copy.json")
    packet = read_endpoint_packet(packet_bytes)
    engine_bytes = require_readable(reader.files, "packet/engine.json")
    evidence = RunEvidence(
        packet=packet,
        packet_id=sha256_hex(packet_bytes),
        marker=Marker.from_json(marker_bytes, "data/packet/marker.copy.json"),
        marker_sha256=sha256_hex(marker_bytes),
        engine=EngineVocabulary.from_json(engine_bytes, "data/packet/engine.json"),
        suite=None if is_bare else _suite(reader.files),
        oracle=None if is_bare else _oracle(reader, packet),
        legs=(),
        journal=(),
        outcome=None,
        answers=(),
        conflicts=(),
    )
    reader.problems += packet_conflicts(evidence)
    if not is_bare:
        reader.problems += [*pinned_conflicts(packet, reader.files), *copy_conflicts(reader, evidence)]
    return replace(evidence, binary_sets=read_binary_sets(reader, packet))


def _suite(files: EvidenceFiles) -> Suite:
    where = "data/packet/inputs/suite.yaml"
    document = read_yaml(require_readable(files, "packet/inputs/suite.yaml"), where)
    if document.problems:
        raise MalformedRecord(document.problems)
    return Suite.from_json(canonical_json(document.tree), where)


def _told(reader: RecordReader, packet: EndpointPacket) -> tuple[HostIdentity | None, NoiseRecord | None]:
    """What the machine is and what was registered of its noise; others complain of what is wrong with them.

    A noise record that contradicts itself is none: freezing admits no such record.
    """
    source = reader.leniently()
    host = source.record("host/identity.json", HostIdentity, because=None)
    data = None if packet.preregistration.power is None else source.bytes_of(NOISE, because=None)
    try:
        noise = None if data is None else NoiseRecord.from_json(data, NOISE)
    except MalformedRecord:
        return host, None
    return host, None if noise is None or any(noise_findings(noise)) else noise


def _oracle(reader: RecordReader, packet: EndpointPacket) -> Oracle | None:
    if not isinstance(packet.preregistration.oracle, TeacherOracle):
        return None
    name = "packet/inputs/oracle.json"
    data = reader.bytes_of(name, because="the preregistration names a teacher")
    try:
        return None if data is None else Oracle.from_json(data, f"data/{name}")
    except MalformedRecord as error:
        reader.problems.extend(error.problems)
        return None


def _answers(reader: RecordReader, evidence: RunEvidence) -> tuple[PhaseAnswer, ...]:
    is_answered = any(entry.event in (Event.PHASE_ANSWERED, Event.PHASE_STOPPED) for entry in evidence.journal)
    source = reader if is_answered or not evidence.is_aborted else reader.leniently()
    names = sorted(name for name in reader.names if name.startswith("phase1/"))
    found = [source.record(name, PhaseAnswer, because=None) for name in names]
    return tuple(answer for answer in found if answer is not None)


def _legs(reader: RecordReader, evidence: RunEvidence) -> tuple[LegEvidence, ...]:
    present = sorted({name.split("/")[1] for name in reader.names if name.startswith("legs/")})
    planned = [f"{index:02d}-{leg}" for index, leg in enumerate(evidence.order, start=1)]
    strangers = [folder for folder in present if folder not in planned]
    reader.problems += [conflict(f"data/legs/{folder}", f"one of {planned}", folder) for folder in strangers]
    return tuple(
        load_leg(reader, evidence, index) for index, folder in enumerate(planned, start=1) if folder in present
    )
