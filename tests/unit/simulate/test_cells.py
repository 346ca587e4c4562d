import numpy as np
import pytest

from labctl.prereg.designs import Design
from labctl.simulate.catalogue import sections
from labctl.simulate.cells import BASE_RATE, PROMPTS, Cell, Disturbance, Floats, draw_rates


def logs_of(cell: Cell, campaigns: int = 4000) -> Floats:
    return np.log(draw_rates(cell, campaigns, np.random.default_rng(3)) / BASE_RATE) * 100


def test_starts_and_rows_scatter_as_the_cell_says() -> None:
    logs = logs_of(Cell(0.4, 0.3))
    assert logs.shape == (4000, 4, PROMPTS)
    assert logs.mean(axis=2).std() == pytest.approx((0.4**2 + 0.3**2 / PROMPTS) ** 0.5, rel=0.03)
    assert (logs - logs.mean(axis=2, keepdims=True)).std() == pytest.approx(0.3 * (12 / 13) ** 0.5, rel=0.03)


def test_only_candidates_have_the_effect() -> None:
    means = logs_of(Cell(0.0, 0.0, effect=2.0)).mean(axis=(0, 2))
    assert means == pytest.approx([0, 100 * np.log(1.02), 100 * np.log(1.02), 0])


def test_prompts_differ_alike_in_every_start() -> None:
    logs = logs_of(Cell(0.0, 0.0, prompt_sd=5.0))
    assert logs.std(axis=1).max() == pytest.approx(0, abs=1e-9)
    assert logs[:, 0].std() == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize(
    ("disturbance", "expected"),
    [
        (Disturbance.LINEAR, [0, 0.5, 1, 1.5]),
        (Disturbance.U_SHAPED, [0, 1.5, 1.5, 0]),
        (Disturbance.WARM_UP, [-1.5, -0.75, -0.375, -0.1875]),
        (Disturbance.BAD_START, [-0.375] * 4),
        (Disturbance.HEAVY_TAILS, [0] * 4),
        (Disturbance.NONE, [0] * 4),
    ],
)
def test_a_disturbance_has_the_magnitude_of_its_cell(disturbance: Disturbance, expected: list[float]) -> None:
    means = logs_of(Cell(0.0, 0.0, disturbance, 1.5), 8000).mean(axis=(0, 2))
    assert means == pytest.approx(expected, abs=0.05)


def test_one_start_of_each_campaign_is_the_bad_one() -> None:
    logs = logs_of(Cell(0.0, 0.0, Disturbance.BAD_START, 2.0)).mean(axis=2)
    assert ((logs < -1).sum(axis=1) == 1).all()


def test_heavy_tails_have_the_sd_of_the_cell_and_far_outliers() -> None:
    logs = logs_of(Cell(0.2, 0.0, Disturbance.HEAVY_TAILS), 20_000).mean(axis=2)
    assert np.median(np.abs(logs)) < 0.2 * 0.6
    assert (np.abs(logs) > 0.8).mean() > 0.002


def test_eight_starts_cancel_what_four_cannot() -> None:
    for design, shift in ((Design.ABBA, 1.0), (Design.ABBABAAB, 0.0)):
        cell = Cell(0.0, 0.0, Disturbance.U_SHAPED, 1.0, design=design)
        means = logs_of(cell, 2).mean(axis=(0, 2))
        candidate = np.array([leg.startswith("B") for leg in cell.order])
        assert means[candidate].mean() - means[~candidate].mean() == pytest.approx(shift, abs=1e-9)


def test_the_catalogue_names_each_cell_once_and_covers_what_records_are_held_to() -> None:
    cells = [cell for section in sections() for cell in section.cells]
    assert len({cell.name for cell in cells}) == len(cells)
    nulls = next(section for section in sections() if section.name == "null")
    assert nulls.at_most == 0.01
    assert {(cell.start_sd, cell.row_sd) for cell in nulls.cells} == {
        (start, row) for start in (0.2, 0.4) for row in (0.05, 0.3, 1.0)
    }
    assert {cell.disturbance for cell in nulls.cells} == set(Disturbance) - {Disturbance.U_SHAPED}
