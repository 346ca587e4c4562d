"""What one component run says, parsed and held together: the only thing that its gates see."""

from collections.abc import Iterator
from dataclasses import dataclass

from labctl.analyze.component.declared import PlannedRow
from labctl.prereg.component_model import ComponentPreregistration
from labctl.records.component import ComponentRecord, PreImport
from labctl.records.component_row import RowRecord, TensorRecord
from labctl.records.microcase import MustStayInertRecord


@dataclass(frozen=True, slots=True)
class Worked:
    """What one worker wrote, and what it is held against."""

    leg: str
    said: ComponentPreregistration
    pre_import: PreImport
    rows: tuple[RowRecord, ...]
    record: ComponentRecord

    @property
    def card_index(self) -> int:
        """The card's place among the registered ones, from 0."""
        return int(self.leg.removeprefix("card"))

    def row_name(self, row: RowRecord) -> str:
        """How a verdict calls a row."""
        return f"{self.leg} {PlannedRow(row.row, row.arm, row.case, row.repeat).name}"

    def inert(self) -> Iterator[MustStayInertRecord]:
        """Records of sizes that must stay inert."""
        return (one for one in self.record.microcases if isinstance(one, MustStayInertRecord))

    def every_row(self) -> tuple[RowRecord, ...]:
        """The rows of all cases, then those of microcases."""
        return (*self.rows, *(one.row for one in self.inert()))

    def weights(self) -> tuple[TensorRecord, ...]:
        """Every weight before the first row."""
        return tuple(drawn.tensor for drawn in self.record.weights_before)
