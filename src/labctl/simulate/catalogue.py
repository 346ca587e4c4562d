"""The cells of the table of error rates: nulls that a record's rules must not pass, and effects that they must see."""

from collections.abc import Iterator
from dataclasses import dataclass

from labctl.prereg.designs import Design
from labctl.simulate.cells import Cell, Disturbance

START_SDS = (0.2, 0.4)
"""A tenth and a fifth of the planned effect of 2 %: what the power rule admits for four starts."""
BEYOND_SDS = (0.5, 1.0)
"""What the power rule keeps out: a calibration of eight starts at this SD refuses four starts for 2 %."""
ROW_SDS = (0.05, 0.3, 1.0)
MIDDLE_ROW_SD = 0.3
EFFECTS = (0.5, 1.0, 2.0, 3.0)
DISTURBANCES = (
    (Disturbance.NONE, 0.0),
    (Disturbance.LINEAR, 0.75),
    (Disturbance.WARM_UP, 1.0),
    (Disturbance.HEAVY_TAILS, 0.0),
    (Disturbance.BAD_START, 2.0),
)
U_SHAPES = (0.5, 1.0, 1.5)


@dataclass(frozen=True, slots=True)
class Section:
    """Cells that belong together, and the share that the default rules may or must pass."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    at_most: float | None = None
    at_least: float | None = None


def sections() -> tuple[Section, ...]:
    """Every section of the table."""
    eight = tuple(
        Cell(start, row, Disturbance.U_SHAPED, 1.0, design=Design.ABBABAAB) for start in START_SDS for row in ROW_SDS
    )
    four = tuple(Cell(START_SDS[0], MIDDLE_ROW_SD, Disturbance.U_SHAPED, size) for size in U_SHAPES)
    wanted = tuple(
        Cell(START_SDS[0], MIDDLE_ROW_SD, effect=2.0, design=design) for design in (Design.ABBA, Design.ABBABAAB)
    )
    return (
        Section("null", "No effect, within the power rule", tuple(_nulls()), at_most=0.01),
        Section("wanted", "The planned effect of 2 %", wanted, at_least=0.9),
        Section("u-eight", "No effect, U-shaped drift, eight starts", eight, at_most=0.01),
        Section("u-four", "No effect, U-shaped drift, four starts: no analysis can remove it", four),
        Section("effects", "Other effects", tuple(_effects())),
        Section("beyond", "No effect, noisier than the power rule admits", tuple(_beyond())),
    )


def _nulls() -> Iterator[Cell]:
    for start_sd in START_SDS:
        for row_sd in ROW_SDS:
            for disturbance, magnitude in DISTURBANCES:
                yield Cell(start_sd, row_sd, disturbance, magnitude)
    yield Cell(START_SDS[0], MIDDLE_ROW_SD, prompt_sd=5.0)


def _effects() -> Iterator[Cell]:
    for design in (Design.ABBA, Design.ABBABAAB):
        for effect in EFFECTS:
            if effect != 2.0:  # noqa: PLR2004 (the planned one has a section of its own)
                yield Cell(START_SDS[0], MIDDLE_ROW_SD, effect=effect, design=design)
        yield Cell(START_SDS[1], MIDDLE_ROW_SD, effect=2.0, design=design)
    yield Cell(START_SDS[0], MIDDLE_ROW_SD, effect=2.0, prompt_sd=5.0)


def _beyond() -> Iterator[Cell]:
    for start_sd in BEYOND_SDS:
        yield Cell(start_sd, MIDDLE_ROW_SD)
        yield Cell(start_sd, MIDDLE_ROW_SD, Disturbance.WARM_UP, 1.0)
        yield Cell(start_sd, MIDDLE_ROW_SD, effect=2.0)
