"""`docs/metrics.md` explains every figure that the code can print, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import analyzer_identity
from labctl.prereg.field_types import MetricId
from labctl.prereg.treatment_kinds import CounterProof
from labctl.records.verdict import Figure, Verdict
from tests.fakes.run_builder import RunBuilder

TOP = Path(__file__).parents[3]
PAGE = (TOP / "docs" / "metrics.md").read_text()
ANALYZE = TOP / "src" / "labctl" / "analyze"


def generic(name: str) -> str:
    """`survival_3` is explained as `survival_N`."""
    return re.sub(r"^survival_\d+$", "survival_N", name)


def documented() -> list[str]:
    """The names in the first column of the page's tables."""
    return re.findall(r"^\| `([A-Za-z0-9_]+)` \|", PAGE, re.MULTILINE)


def figures_of(verdict: Verdict) -> Iterator[Figure]:
    yield from verdict.effect
    for gate in verdict.gates:
        yield from gate.figures
    for start in verdict.starts:
        yield from start.figures
    for row in verdict.rows:
        yield from row.figures


def names_in_the_source() -> set[str]:
    """Every figure whose name is written at its call."""
    found = set()
    for path in ANALYZE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name("figure" | "decimal_figure" | "percent_figure"), args=[ast.Constant(str(name)), *_]
                ):
                    found.add(name)
                case _:
                    pass
    return found


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name and unit of every figure of a run with every gate."""
    verdict = analyze_run(RunBuilder(stops=False, prompts=6).seal(tmp_path_factory.mktemp("run")), analyzer_identity())
    return {generic(one.name): one.unit for one in figures_of(verdict)}


def test_every_figure_that_a_report_prints_is_explained(printed: dict[str, str]) -> None:
    assert len(printed) > 40
    assert printed.keys() - set(documented()) == set()


def test_every_figure_that_the_source_names_is_explained() -> None:
    found = names_in_the_source()
    assert {"exact_rows", "practical_floor", "proof_lines"} <= found
    assert found - set(documented()) == set()


def test_every_metric_and_every_counter_that_can_be_a_proof_is_explained() -> None:
    counters = get_args(CounterProof.model_fields["counter"].annotation)
    assert {*MetricId, *counters} - set(documented()) == set()


def test_nothing_is_explained_that_no_report_prints(printed: dict[str, str]) -> None:
    counters = get_args(CounterProof.model_fields["counter"].annotation)
    known = printed.keys() | names_in_the_source() | {*counters}
    assert set(documented()) - known == set()


def test_each_unit_is_the_one_that_is_printed(printed: dict[str, str]) -> None:
    checked = 0
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        unit = printed.get(cells[0].strip("`")) if line.startswith("| `") else None
        if unit is not None:
            checked += 1
            shown = re.sub(r"^of \d+ ", "of N ", unit)
            assert shown in {cell.removesuffix(" (ms)") for cell in cells[2:]}, line
    assert checked > 40
