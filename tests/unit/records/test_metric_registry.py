"""The registry says what the page says, of every metric once, and finds numbered ones."""

from pathlib import Path

import pytest

from labctl.prereg.field_types import MetricId
from labctl.records.metric_registry import METRICS, Metric, find_metric

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_the_page_has_the_same_formula_and_unit(metric: Metric) -> None:
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{metric.id}` |"))
    cells = [cell.strip().removesuffix(" (ms)") for cell in line.strip("|").split("|")]
    said = metric.described()
    assert said["formula"] in cells
    assert said["unit"] in cells


def test_every_rate_that_can_decide_is_a_metric() -> None:
    assert {*MetricId} <= {metric.id for metric in METRICS}


def test_an_id_stands_for_one_metric() -> None:
    assert len({metric.id for metric in METRICS}) == len(METRICS)


def test_a_numbered_metric_is_found_and_an_unknown_one_is_not() -> None:
    found = find_metric("survival_3")
    assert found is not None
    assert found.id == "survival_N"
    assert find_metric("survival") is None
    assert find_metric("survival_") is None
    assert find_metric("p") is None
