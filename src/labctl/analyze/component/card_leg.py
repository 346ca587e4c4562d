"""One card's leg, read from its folder."""

from dataclasses import dataclass, fields

from labctl.analyze.card_evidence import LegHead
from labctl.analyze.component.evidence import Worked
from labctl.analyze.record_reader import RecordReader
from labctl.digest import sha256_hex
from labctl.errors import MalformedRecord
from labctl.prereg.component_model import ComponentPreregistration
from labctl.records.card_order import ComponentOrder
from labctl.records.component import ComponentRecord, PreImport
from labctl.records.component_row import RowRecord, read_rows
from labctl.records.devices import Discovery
from labctl.records.worker import WorkerPostflight, WorkerProcess


@dataclass(frozen=True, slots=True)
class CardLeg(LegHead):
    """One card's leg; what its folder does not hold is None."""

    order: ComponentOrder | None
    discovery: Discovery | None
    discovery_sha256: str | None
    process: WorkerProcess | None
    postflight: WorkerPostflight | None
    pre_import: PreImport | None
    pre_import_sha256: str | None
    rows: tuple[RowRecord, ...] | None
    rows_sha256: str | None
    component: ComponentRecord | None
    log: bytes | None
    maps: tuple[str, ...] | None

    def worked(self, said: ComponentPreregistration) -> Worked | None:
        """What the worker wrote; None where a part of it is not there."""
        if self.pre_import is None or self.rows is None or self.component is None:
            return None
        return Worked(leg=self.name, said=said, pre_import=self.pre_import, rows=self.rows, record=self.component)


def load_card_leg(reader: RecordReader, head: LegHead) -> CardLeg:
    """The leg whose head was read."""
    at, because = f"legs/{head.folder}", head.because
    rows = reader.bytes_of(f"{at}/rows.jsonl", because=because)
    reader.bytes_of(f"{at}/leg.log", because=because)
    return CardLeg(
        **{field.name: getattr(head, field.name) for field in fields(head)},
        order=reader.record(f"{at}/order.json", ComponentOrder, because=because),
        discovery=reader.record(f"{at}/discovery.json", Discovery, because=because),
        discovery_sha256=_sha256(reader, f"{at}/discovery.json"),
        process=reader.record(f"{at}/process.json", WorkerProcess, because=because),
        postflight=reader.record(f"{at}/postflight.json", WorkerPostflight, because=because),
        pre_import=reader.record(f"{at}/pre-import.json", PreImport, because=because),
        pre_import_sha256=_sha256(reader, f"{at}/pre-import.json"),
        rows=None if rows is None else _rows(reader, rows, f"data/{at}/rows.jsonl"),
        rows_sha256=None if rows is None else sha256_hex(rows),
        component=reader.record(f"{at}/component.json", ComponentRecord, because=because),
        log=reader.bytes_of(f"{at}/worker.log", because=because),
        maps=reader.lines_of(f"{at}/maps.txt", because=because),
    )


def _rows(reader: RecordReader, data: bytes, where: str) -> tuple[RowRecord, ...] | None:
    try:
        return read_rows(data, where)
    except MalformedRecord as error:
        reader.problems.extend(error.problems)
        return None


def _sha256(reader: RecordReader, name: str) -> str | None:
    data = reader.leniently().bytes_of(name, because=None)
    return None if data is None else sha256_hex(data)
