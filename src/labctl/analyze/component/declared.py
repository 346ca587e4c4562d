"""What a preregistration makes every leg record: rows, dimensions, layouts and the layer axis, in order."""

from dataclasses import dataclass
from typing import assert_never

from labctl.analyze.component.layout import Layout, owner_layout, select_view
from labctl.prereg.component_model import Boundary, ComponentPreregistration, MustRaise, MustStayInert, Term
from labctl.prereg.extents import extent_of


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One row that a leg must hold."""

    row: int
    """From 1; the rows of microcases follow those of cases."""
    arm: str
    case: str
    repeat: int
    """From 1."""

    @property
    def name(self) -> str:
        """How a verdict calls it."""
        return f"{self.arm} row {self.row} ({self.case}, repeat {self.repeat})"


def planned_rows(said: ComponentPreregistration) -> tuple[PlannedRow, ...]:
    """The rows of one leg, in order: arms, in them cases, in them repeats."""
    triples = [
        (arm, case.name, repeat + 1) for arm in said.arms for case in said.cases for repeat in range(said.repeats)
    ]
    return tuple(PlannedRow(number, *triple) for number, triple in enumerate(triples, start=1))


def dimensions_of(said: ComponentPreregistration, case: str) -> dict[str, int]:
    """The dimensions at one case, or at the size of one inert microcase."""
    sizes = {one.name: one.values for one in said.cases}
    for microcase in said.microcases:
        match microcase:
            case MustStayInert():
                sizes[microcase.name] = microcase.values
            case MustRaise():
                pass
            case _:
                assert_never(microcase)
    return {**said.dimensions, **sizes.get(case, {})}


def buffer_layouts(said: ComponentPreregistration, case: str) -> dict[str, Layout]:
    """The layout of each owning tensor at one case, by name."""
    dimensions = dimensions_of(said, case)
    return {buffer.name: owner_layout(buffer.shape, buffer.dtype, dimensions) for buffer in said.buffers}


def boundary_layout(said: ComponentPreregistration, boundary: Boundary, case: str) -> Layout:
    """The layout of one boundary at one case: its buffer's, or that of the declared view of it."""
    owner = buffer_layouts(said, case)[boundary.of]
    return owner if boundary.select is None else select_view(owner, boundary.select.dim, boundary.select.index)


def cache_count(said: ComponentPreregistration) -> int:
    """How many caches are written in each row."""
    if said.caches is None:
        return 0
    return extent_of(said.caches.count, {**said.dimensions, **said.cases[0].values}) or 0


def layer_axis(said: ComponentPreregistration, boundary: Boundary) -> int | None:
    """The axis of a boundary that counts layers: the one whose extent is the number of caches, written alike."""
    if said.caches is None:
        return None
    shape: list[Term] = list(next(buffer.shape for buffer in said.buffers if buffer.name == boundary.of))
    if boundary.select is not None:
        del shape[boundary.select.dim]
    return shape.index(said.caches.count) if said.caches.count in shape else None
