from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from labctl.analyze.drift import arm_spreads, drift_warnings
from labctl.analyze.evidence import RunEvidence
from labctl.analyze.load import load_evidence
from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import analyzer_identity
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Arm
from tests.fakes.run_builder import RunBuilder

METRIC = MetricId.DECODE_RATE_CONVENTIONAL_1_100


def run_with_gaps(**gaps_ns: int) -> RunBuilder:
    """Every row of a start emits at one gap."""
    builder = RunBuilder(stops=False)
    for name, gap_ns in gaps_ns.items():
        for row in builder.leg(name).rows:
            row.gap_ns = gap_ns
    return builder


def evidence_of(folder: Path, **gaps_ns: int) -> RunEvidence:
    return load_evidence(run_with_gaps(**gaps_ns).seal(folder))


def test_equal_starts_raise_no_doubt(tmp_path: Path) -> None:
    evidence = evidence_of(tmp_path)
    assert [spread.percent < Fraction(1, 100) for spread in arm_spreads(evidence, METRIC)] == [True, True]
    assert list(drift_warnings(evidence, METRIC)) == []


def test_controls_that_drift_by_two_times_are_a_doubt_with_both_speeds(tmp_path: Path) -> None:
    (line,) = drift_warnings(evidence_of(tmp_path, A1=2_000_000, B1=1_400_000, B2=1_400_000, A2=1_000_000), METRIC)
    assert line.startswith("controls A1 and A2 differ by 100 % (500 and 1000 tokens/s): more than the headline gain")


def test_a_spread_over_two_percent_is_a_doubt_although_the_gain_is_larger(tmp_path: Path) -> None:
    (line,) = drift_warnings(evidence_of(tmp_path, A1=1_030_000, A2=1_000_000, B1=700_000, B2=700_000), METRIC)
    assert line.startswith("controls A1 and A2 differ by 3 % (970.9 and 1000 tokens/s): the headline gain of ")
    assert line.endswith("% is uncertain by about as much")


def test_a_small_spread_is_a_doubt_where_it_is_more_than_half_of_the_gain(tmp_path: Path) -> None:
    gaps = {"A1": 1_010_000, "A2": 1_000_000, "B1": 1_960_000, "B2": 1_960_000}
    (line,) = drift_warnings(evidence_of(tmp_path, **gaps), METRIC)
    assert line.startswith("controls A1 and A2 differ by 1 % (990.1 and 1000 tokens/s): more than half of the headline")


def test_candidates_are_looked_at_too(tmp_path: Path) -> None:
    lines = list(drift_warnings(evidence_of(tmp_path, B1=1_400_000, B2=1_300_000), METRIC))
    assert [line.split(" differ")[0] for line in lines] == ["candidates B1 and B2"]


def test_without_candidates_the_spread_is_still_told(tmp_path: Path) -> None:
    evidence = evidence_of(tmp_path, A1=2_000_000)
    controls = replace(evidence, legs=evidence.arm(Arm.CONTROL))
    (line,) = drift_warnings(controls, METRIC)
    assert line.endswith("no difference below that can be told on this machine")


def test_the_verdict_holds_the_spread_exactly_and_the_doubt(tmp_path: Path) -> None:
    gaps = {"A1": 2_000_000, "A2": 1_000_000}
    verdict = analyze_run(run_with_gaps(**gaps).seal(tmp_path), analyzer_identity())
    spreads = {one.name: Fraction(one.value) for one in verdict.effect if one.name.endswith("_spread")}
    assert spreads.keys() == {"control_spread", "candidate_spread"}
    assert abs(spreads["control_spread"] - 100) < Fraction(1, 100)
    assert any(line.startswith("controls A1 and A2 differ by") for line in verdict.warnings)
