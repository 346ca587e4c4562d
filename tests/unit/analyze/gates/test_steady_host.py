"""Gate `steady_host`: what load, memory and clocks were between rows, in both analyzers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.records.leg import Telemetry
from labctl.records.verdict import GateOutcome, GateResult, Verdict
from labctl.standalone import analyze_run as standalone
from tests.fakes.run_builder import RunBuilder

BOUNDS = {"kind": "steady_host", "max_load": "2", "min_memory_available_bytes": 1000, "min_cpu_mhz": 2000}


def sample(row: int, **changes: object) -> bytes:
    usual = Telemetry(
        row=row, mono_ns=1, load_1m_milli=2000, cpu_ticks_total=10, cpu_ticks_idle=5, memory_available_bytes=1000,
        server_rss_bytes=1, cpu_frequency_mhz=(2000, 2400),
    )  # fmt: skip
    return canonical_json(usual.model_dump(mode="json") | changes)


def judged(folder: Path, spoil: Callable[[int], bytes] = sample, bounds: dict[str, object] = BOUNDS) -> GateOutcome:
    builder = RunBuilder(stops=False)
    usual = builder.frozen_packet().preregistration.model_dump(mode="json")["gates"]
    builder.packet = {"preregistration": {"gates": [*usual, bounds]}}
    for leg in builder.legs:
        leg.telemetry = b"".join((spoil if leg.name == "B2" else sample)(row) for row in range(3))
    run = builder.seal(folder)
    verdict = analyze_run(run, analyzer_identity())
    other = Verdict.from_json(canonical_json(standalone.judge_run(builder.root)), "standalone")
    assert disagreements(verdict, other) == ()
    assert [gate.kind for gate in verdict.gates if gate.result is not GateResult.PASSED] in ([], ["steady_host"])
    return next(gate for gate in verdict.gates if gate.kind == "steady_host")


def test_a_host_at_its_bounds_passes_and_its_worst_samples_are_told(tmp_path: Path) -> None:
    outcome = judged(tmp_path)
    assert outcome.result is GateResult.PASSED
    worst = {one.name: one.value for one in outcome.figures if one.where == "B2"}
    assert worst == {"highest_load": "2", "lowest_memory_available_bytes": "1000", "lowest_cpu_mhz": "2000"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"load_1m_milli": 2001}, "highest_load"),
        ({"memory_available_bytes": 999}, "lowest_memory_available_bytes"),
        ({"memory_available_bytes": 0}, "lowest_memory_available_bytes"),
        ({"cpu_frequency_mhz": [2400, 1999]}, "lowest_cpu_mhz"),
    ],
)
def test_one_sample_out_of_bounds_fails_the_gate_and_no_other(
    changes: dict[str, object], told: str, tmp_path: Path
) -> None:
    outcome = judged(tmp_path, lambda row: sample(row, **(changes if row == 1 else {})))
    assert outcome.result is GateResult.FAILED
    assert told in outcome.reason


@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: b"" if row == 1 else sample(row),
        lambda _: b"",
        lambda row: sample(row + 1),
        lambda row: sample(row, load_1m_milli="2"),
        lambda row: sample(row, cpu_frequency_mhz=[]),
        lambda _: b"no json\n",
    ],
)
def test_samples_that_lack_are_no_pass(spoil: Callable[[int], bytes], tmp_path: Path) -> None:
    assert judged(tmp_path, spoil).result is GateResult.NOT_EVALUATED


def test_a_quantity_without_a_bound_is_told_and_not_judged(tmp_path: Path) -> None:
    outcome = judged(
        tmp_path,
        lambda row: sample(row, cpu_frequency_mhz=[], load_1m_milli=90_000),
        {**BOUNDS, "max_load": None, "min_cpu_mhz": None},
    )
    assert outcome.result is GateResult.PASSED
    assert "90" in {one.value for one in outcome.figures}
