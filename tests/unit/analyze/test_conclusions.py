"""What may be concluded turns around exactly when the arms are swapped, in both analyzers."""

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labctl.agreement import disagreements
from labctl.analyze.conclusions import figures_of_speeds
from labctl.analyze.figures import median
from labctl.analyze.sealed_run import analyze_run
from labctl.analyze.speeds import RunSpeeds, StartSpeeds
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Arm
from labctl.records.verdict import Verdict
from labctl.standalone import analyze_run as second_analyzer
from labctl.standalone import statistics_gates as standalone
from labctl.standalone.run_reading import Run
from tests.fakes.run_builder import RunBuilder

METRIC = MetricId.DECODE_RATE_CONVENTIONAL_1_100
NS = 99 * 10**9
ORDERS = ("ABBA", "ABBABAAB", "AB", "ABAB", "ABBAAB")
SWAP = str.maketrans("AB", "BA")
Rows = tuple[tuple[int, ...], ...]
Figures = dict[str, str]
TURNING = ("effect_log", "effect_t", "hodges_lehmann_log", "median_row_log")
BOUNDS = ("no_drift", "drift_adjusted", "hodges_lehmann", "median_row")
STAYING = ("start_sd_log", "start_degrees", "drift_per_start_log", "start_permutation_floor", "hodges_lehmann_coverage")


@dataclass
class FakeRow:
    metrics: dict[str, Fraction]


@dataclass
class FakeLeg:
    name: str
    rows: list[FakeRow]


@dataclass
class FakeRun:
    """As much of the standalone analyzer's run as its statistics look at."""

    legs: list[FakeLeg]
    order: list[str]
    metric: str = METRIC.value
    prereg: dict[str, Any] = field(default_factory=lambda: {"schedule": {}, "power": None})

    def arm(self, arm: str) -> list[FakeLeg]:
        return [leg for leg in self.legs if leg.name[0] == arm]


def names(order: str) -> tuple[str, ...]:
    return tuple(f"{arm}{order[: place + 1].count(arm)}" for place, arm in enumerate(order))


def of_labctl(order: str, rows: Rows) -> Figures:
    starts = []
    for name, spans in zip(names(order), rows, strict=True):
        rates = tuple(Fraction(NS, ns) for ns in spans)
        starts.append(StartSpeeds(name, Arm(name[0]), rates, median(rates)))
    figures = figures_of_speeds(RunSpeeds(METRIC, names(order), tuple(starts)))
    return {one.name: one.value for one in figures}


def of_standalone(order: str, rows: Rows) -> Figures:
    legs = [
        FakeLeg(name, [FakeRow({METRIC.value: Fraction(NS, ns)}) for ns in spans])
        for name, spans in zip(names(order), rows, strict=True)
    ]
    found = standalone.conclusions(cast("Run", FakeRun(legs, [*names(order)])))
    return {one["name"]: one["value"] for one in found}


@st.composite
def campaigns(draw: st.DrawFn) -> tuple[str, Rows]:
    order = draw(st.sampled_from(ORDERS))
    count = draw(st.integers(1, 8))
    # Few distinct values make ties, between rows, starts and products.
    ns = draw(st.sampled_from((st.integers(10**9, 2 * 10**9), st.sampled_from((10**9, 2 * 10**9, 4 * 10**9)))))
    start = st.tuples(*[ns] * count)
    return order, draw(st.tuples(*[start] * len(order)))


def turned(value: str) -> str:
    return value if Decimal(value) == 0 else value[1:] if value.startswith("-") else f"-{value}"


@pytest.mark.parametrize("figures_of", [of_labctl, of_standalone])
@settings(max_examples=120, deadline=None)
@given(campaign=campaigns())
def test_swapping_the_labels_turns_every_signed_number_exactly(
    figures_of: Any,  # noqa: ANN401 (one of the two functions above)
    campaign: tuple[str, Rows],
) -> None:
    order, rows = campaign
    forth, back = figures_of(order, rows), figures_of(order.translate(SWAP), rows)
    assert forth.keys() == back.keys()
    for name in TURNING:
        if name in forth:
            assert back[name] == turned(forth[name]), name
    for name in BOUNDS:
        if f"{name}_lower_log" in forth:
            assert back[f"{name}_lower_log"] == turned(forth[f"{name}_upper_log"]), name
            assert back[f"{name}_upper_log"] == turned(forth[f"{name}_lower_log"]), name
    for name in STAYING:
        assert back.get(name) == forth.get(name), name
    # Flips on the other side of the observed one are those that the other labelling counts; ties count in both.
    if "sign_flip_count" in forth:
        assert int(forth["sign_flip_count"]) + int(back["sign_flip_count"]) > 2 ** len(rows[0])


FOUR_LOGS = ((1, 1, 1),) * 4 + ((1, 1, 2), (1, 2, 1), (1, 4, 1), (2, 1, 1))
"""The mean of two Walsh averages is that of four logs of equal products, which rounding keeps from 0."""


@settings(max_examples=120, deadline=None)
@given(campaign=campaigns())
@example(campaign=("ABBABAAB", tuple(tuple(10**9 * one for one in row) for row in FOUR_LOGS)))
def test_both_analyzers_compute_the_same_figures(campaign: tuple[str, Rows]) -> None:
    one, other = of_labctl(*campaign), of_standalone(*campaign)
    assert other.keys() <= one.keys()
    for name, value in other.items():
        if name.endswith("_log"):
            assert float(one[name]) == pytest.approx(float(value), rel=1e-9), name
            assert (Decimal(one[name]) == 0) == (Decimal(value) == 0), name
        else:
            assert one[name] == value, name


def test_no_start_figure_is_there_where_a_start_has_no_headline() -> None:
    starts = (
        StartSpeeds("A1", Arm.CONTROL, (Fraction(1), None), None),
        StartSpeeds("B1", Arm.CANDIDATE, (Fraction(2), Fraction(2)), Fraction(2)),
    )
    assert [*figures_of_speeds(RunSpeeds(METRIC, ("A1", "B1"), starts))] == []


def test_the_figures_of_four_starts() -> None:
    rows = tuple(
        tuple(base + 1000 * row for row in range(6)) for base in (10**9, 97 * 10**7, 971 * 10**6, 1001 * 10**6)
    )
    found = of_labctl("ABBA", rows)
    assert found["start_permutation_p"] == found["start_permutation_floor"] == "1/6"
    assert found["sign_flip_count"] == "1"
    assert found["start_degrees"] == "2"
    assert float(found["effect_percent"]) == pytest.approx(100 * ((1.001 / (0.97 * 0.971)) ** 0.5 - 1), rel=1e-4)
    assert float(found["effect_bound_percent"]) < float(found["effect_percent"])


def test_a_drawn_order_is_permuted_over_the_draw_alone() -> None:
    rates = (Fraction(1),)
    starts = tuple(
        StartSpeeds(name, Arm(name[0]), rates, Fraction(place + 1)) for place, name in enumerate(names("ABBA"))
    )
    both = tuple(tuple(Arm(letter) for letter in order) for order in ("ABBA", "BAAB"))
    figures = figures_of_speeds(RunSpeeds(METRIC, names("ABBA"), starts), both)
    assert {one.name: one.value for one in figures}["start_permutation_floor"] == "1/2"


def speeds_of(order: str, *rates: tuple[int, ...]) -> RunSpeeds:
    starts = []
    for name, row in zip(names(order), rates, strict=True):
        exact = tuple(Fraction(rate) for rate in row)
        starts.append(StartSpeeds(name, Arm(name[0]), exact, median(exact)))
    return RunSpeeds(METRIC, names(order), tuple(starts))


def test_starts_that_do_not_vary_have_an_effect_and_no_bound() -> None:
    found = {one.name for one in figures_of_speeds(speeds_of("ABBA", (1,), (2,), (2,), (1,)))}
    assert {"effect_log", "start_permutation_p", "sign_flip_p"} <= found
    assert not {"effect_bound_log", "effect_t", "effect_p", "no_drift_lower_log", "drift_adjusted_lower_log"} & found


def test_starts_of_different_length_have_no_row_figures() -> None:
    found = {one.name for one in figures_of_speeds(speeds_of("ABBA", (1,), (2, 2), (2,), (1,)))}
    assert "effect_log" in found
    assert "sign_flip_p" not in found


def test_what_cannot_be_counted_or_ranked_is_left_out() -> None:
    many = {one.name for one in figures_of_speeds(speeds_of("AB", (1,) * 27, (2,) * 27))}
    assert "hodges_lehmann_log" in many
    assert "sign_flip_p" not in many
    more = {one.name for one in figures_of_speeds(speeds_of("AB", (1,) * 129, (2,) * 129))}
    assert "median_row_log" in more
    assert not {"hodges_lehmann_log", "median_row_lower_log"} & more
    assert of_standalone("AB", ((1,) * 129, (2,) * 129)).keys() <= more


def test_a_bound_beyond_all_numbers_has_a_log_and_no_percent() -> None:
    found = {one.name for one in figures_of_speeds(speeds_of("ABBA", (1,), (10**300,), (1,), (1,)))}
    assert "no_drift_upper_log" in found
    assert "no_drift_upper_percent" not in found


def test_a_sealed_coin_is_permuted_over_its_two_sides_by_both_analyzers(tmp_path: Path) -> None:
    schedule = {"order": ["A1", "B1", "B2", "A2"], "design": "abba", "mirror": "sealed_coin"}
    builder = RunBuilder(stops=False, packet={"preregistration": {"schedule": schedule}})
    one = analyze_run(builder.seal(tmp_path), analyzer_identity())
    other = Verdict.from_json(canonical_json(second_analyzer.judge_run(builder.root)), "standalone")
    figures = {figure.name: figure.value for figure in one.effect}
    assert (figures["start_permutation_p"], figures["start_permutation_floor"]) == ("1/2", "1/2")
    assert disagreements(one, other) == ()


def test_three_starts_have_no_residual_beside_a_drift() -> None:
    found = {one.name for one in figures_of_speeds(speeds_of("ABB", (1,), (2,), (3,)))}
    assert "no_drift_lower_log" in found
    assert not {"drift_per_start_log", "drift_adjusted_lower_log"} & found
