"""From the files of one leg's folder to its evidence."""

from labctl.analyze.evidence import LegEvidence, RunEvidence, differences
from labctl.analyze.files import leg_manifest_problems
from labctl.analyze.record_reader import RecordReader
from labctl.analyze.stream import StreamRow, read_row
from labctl.digest import sha256_hex
from labctl.errors import MalformedRecord
from labctl.prereg.model import Arm
from labctl.records.leg import LegExit, Postflight, ProcessRecord, StopCause
from labctl.records.order import LegStarted, WorkOrder
from labctl.records.wire import WireRow, read_wire_row


def load_leg(reader: RecordReader, evidence: RunEvidence, index: int) -> LegEvidence:
    """One start, by its place in the order (from 1)."""
    name = evidence.order[index - 1]
    folder = f"{index:02d}-{name}"
    at = f"legs/{folder}"
    digest, problems = leg_manifest_problems(reader.files, folder)
    if evidence.was_cut_short(name):
        digest = None if problems else digest
        reader = reader.leniently()
    reader.problems += problems
    # A leg that failed holds what it reached; one that completed holds everything.
    leg_exit = reader.record(f"{at}/exit.json", LegExit, because="the leg is closed" if digest else None)
    because = "the leg completed" if leg_exit is not None and leg_exit.cause is StopCause.COMPLETED else None
    order_bytes = reader.bytes_of(f"{at}/order.json", because=because)
    reader.bytes_of(f"{at}/leg.log", because=because)
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
        telemetry=reader.bytes_of(f"{at}/telemetry.jsonl", because=None),
        maps=reader.lines_of(f"{at}/maps.txt", because=because),
        wires=wires,
        rows=_rows(wires),
    )


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
            wire = read_wire_row(reads, received, f"data/{at}/wire/{stem}")
        except MalformedRecord as error:
            reader.problems.extend(error.problems)
            continue
        reader.problems += differences(f"data/{at}/wire/{stem}", [("row", stem, f"{wire.opened.row:02d}")])
        wires.append(wire)
    return tuple(sorted(wires, key=lambda wire: wire.opened.row))


def _rows(wires: tuple[WireRow, ...]) -> tuple[StreamRow, ...]:
    return tuple(read_row(wire) for wire in wires)
