"""From the files of a run that starts no server to its evidence, whatever its legs hold."""

from collections.abc import Callable
from dataclasses import replace

from labctl.analyze.card_evidence import CardEvidence, HeadT, LegHead
from labctl.analyze.evidence import conflict, differences
from labctl.analyze.files import EvidenceFiles, leg_manifest_problems, require_readable
from labctl.analyze.host_conflicts import copy_conflicts, host_conflicts
from labctl.analyze.journal_reading import read_journal, read_outcome
from labctl.analyze.record_reader import RecordReader
from labctl.analyze.run_conflicts import journal_conflicts, marker_conflicts, pinned_conflicts
from labctl.digest import sha256_hex
from labctl.errors import Problem
from labctl.packet.model import Packet
from labctl.records.devices import Discovery
from labctl.records.leg import LegExit, StopCause
from labctl.records.marker import Marker
from labctl.records.order import LegStarted
from labctl.records.run import OutcomeKind
from labctl.records.seal import SealOutcome

DEVICES = "host/devices.json"
LegLoader = Callable[[RecordReader, LegHead], HeadT]
"""Reads what one kind of leg holds beside its head; complaints go to the reader."""


def load_card_campaign(files: EvidenceFiles, sealed: SealOutcome, load_leg: LegLoader[HeadT]) -> CardEvidence[HeadT]:
    """Everything that a run's files say, with every contradiction between them.

    Raises:
        BrokenEvidence: packet or marker cannot be read, so that nothing can be judged.
    """
    reader = RecordReader(files, frozenset(files.names()))
    is_aborted = sealed.outcome is OutcomeKind.ABORTED
    evidence: CardEvidence[HeadT] = _opened(reader)
    has_legs = any(name.startswith("legs/") for name in reader.names)
    if has_legs or not is_aborted:
        reader.problems += [*pinned_conflicts(evidence.packet, files), *copy_conflicts(reader, evidence)]
    journal = read_journal(reader, may_be_torn=is_aborted)
    evidence = replace(evidence, journal=journal, outcome=read_outcome(reader, sealed, journal))
    reader.problems += host_conflicts(reader, evidence)
    evidence = _with_cards(reader, evidence, because="cards are looked at before any leg" if has_legs else None)
    evidence = replace(evidence, legs=_legs(reader, evidence, load_leg))
    reader.problems += journal_conflicts(evidence)
    return replace(evidence, conflicts=tuple(dict.fromkeys(reader.problems)))


def _opened(reader: RecordReader) -> CardEvidence[HeadT]:
    packet_bytes = require_readable(reader.files, "packet/packet.json")
    marker_bytes = require_readable(reader.files, "packet/marker.copy.json")
    evidence: CardEvidence[HeadT] = CardEvidence(
        packet=Packet.from_json(packet_bytes, "data/packet/packet.json"),
        packet_id=sha256_hex(packet_bytes),
        marker=Marker.from_json(marker_bytes, "data/packet/marker.copy.json"),
        marker_sha256=sha256_hex(marker_bytes),
        discovery=None,
        discovery_sha256=None,
        legs=(),
        journal=(),
        outcome=None,
        conflicts=(),
    )
    reader.problems += marker_conflicts(evidence)
    return evidence


def _with_cards(reader: RecordReader, evidence: CardEvidence[HeadT], *, because: str | None) -> CardEvidence[HeadT]:
    source = reader if because else reader.leniently()
    data = source.bytes_of(DEVICES, because=because)
    digest = None if data is None else sha256_hex(data)
    return replace(evidence, discovery=source.record(DEVICES, Discovery, because=None), discovery_sha256=digest)


def _legs(reader: RecordReader, evidence: CardEvidence[HeadT], load_leg: LegLoader[HeadT]) -> tuple[HeadT, ...]:
    present = sorted({name.split("/")[1] for name in reader.names if name.startswith("legs/")})
    planned = {f"{index:02d}-{leg}": leg for index, leg in enumerate(evidence.order, start=1)}
    strangers = [folder for folder in present if folder not in planned]
    reader.problems += [conflict(f"data/legs/{folder}", f"one of {[*planned]}", folder) for folder in strangers]
    legs = []
    for index, (folder, name) in enumerate(planned.items(), start=1):
        if folder in present:
            is_cut = evidence.was_cut_short(name)
            heard = reader.leniently() if is_cut else reader
            legs.append(load_leg(heard, _head(reader, heard, (evidence, index, folder))))
    return tuple(legs)


def _head(reader: RecordReader, heard: RecordReader, place: tuple[CardEvidence[HeadT], int, str]) -> LegHead:
    evidence, index, folder = place
    digest, problems = leg_manifest_problems(reader.files, folder)
    is_cut = heard is not reader
    digest = None if is_cut and problems else digest
    reader.problems += problems  # a leg manifest that does not hold is told, however the leg ended
    at = f"legs/{folder}"
    order = heard.bytes_of(f"{at}/order.json", because="the leg is closed" if digest else None)
    head = LegHead(
        folder=folder,
        name=evidence.order[index - 1],
        index=index,
        manifest_sha256=digest,
        order_sha256=None if order is None else sha256_hex(order),
        started=heard.record(f"{at}/LEG_STARTED.json", LegStarted, because="the leg is closed" if digest else None),
        exit=heard.record(f"{at}/exit.json", LegExit, because="the leg is closed" if digest else None),
    )
    heard.problems += _head_conflicts(evidence, head)
    return head


def _head_conflicts(evidence: CardEvidence[HeadT], head: LegHead) -> list[Problem]:
    where = f"data/legs/{head.folder}"
    checks: list[tuple[str, object, object]] = []
    if head.started is not None:
        checks += [
            ("leg of LEG_STARTED.json", head.name, head.started.leg),
            ("order of LEG_STARTED.json", head.order_sha256, head.started.order_sha256),
            ("boot of LEG_STARTED.json", evidence.marker.host.boot_id, head.started.boot_id),
        ]
    if head.exit is not None:
        checks.append(("leg of exit.json", head.name, head.exit.leg))
        if not evidence.is_aborted and evidence.outcome is not None:
            checks.append(("cause of exit.json", StopCause.COMPLETED, head.exit.cause))
    return list(differences(where, checks))
