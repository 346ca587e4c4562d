"""Calibration runs of one host are pooled; everything else is refused by name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.analyze.load import load_evidence
from labctl.analyze.noise_use import noise_lines, noise_use_figures, strangeness
from labctl.analyze.pool import pool_noise
from labctl.analyze.remarks import follow_ups
from labctl.analyze.sealed_run import analyze_run
from labctl.errors import Refused
from labctl.packet.lane import lane_key
from labctl.packet.tool import analyzer_identity
from labctl.prereg.field_types import MetricId
from labctl.prereg.noise import NoiseRecord, noise_findings
from labctl.records.lane import Lane
from labctl.records.verdict import VerdictKind
from labctl.seal.verify import SealedRun
from tests.fakes.run_builder import GATES, RunBuilder, json_edit

CONVENTIONAL = MetricId.DECODE_RATE_CONVENTIONAL_1_100
STARTS = ("A1", "A2", "A3", "A4")


def calibration(**changes: object) -> RunBuilder:
    gates = [gate for gate in GATES if gate["kind"] not in ("pair", "control_near")]
    said = {"class": "calibration", "treatment": None, "decision": None, "gates": gates, "expectation": None, **changes}
    builder = RunBuilder(order=STARTS, stops=False, packet={"preregistration": said})
    for place, leg in enumerate(builder.legs):
        for row in leg.rows:
            row.gap_ns += 7_000 * (place * place % 3)
    return builder


@pytest.fixture
def run(tmp_path: Path) -> SealedRun:
    return calibration().seal(tmp_path / "one")


def pooled(*runs: SealedRun) -> NoiseRecord:
    return pool_noise(runs, "bench", analyzer_identity())


def test_a_calibrations_verdict_holds_the_noise_of_its_host(run: SealedRun) -> None:
    verdict = analyze_run(run, analyzer_identity())
    assert verdict.verdict is VerdictKind.CALIBRATION
    told = {one.name: one.decimal for one in verdict.effect}
    assert told["noise_starts"] == "4"
    assert 0.3 < float(told["noise_start_sd"]) < 0.5
    assert float(told["noise_start_sd_upper"]) > float(told["noise_start_sd_planning"]) > float(told["noise_start_sd"])


def test_a_pooled_record_agrees_with_itself_and_with_the_verdict(run: SealedRun) -> None:
    record = pooled(run)
    assert list(noise_findings(record)) == []
    (told,) = [one for one in analyze_run(run, analyzer_identity()).effect if one.name == "noise_start_sd"]
    assert record.start_sd_percent == told.value
    assert (record.df, record.engine, record.target) == (3, "reference reference-1", "engine:reference")
    assert NoiseRecord.from_json(record.canonical(), "noise") == record


def test_runs_are_pooled_by_degrees_of_freedom(run: SealedRun, tmp_path: Path) -> None:
    other = calibration(title="Again")
    other.leg("A2").rows[0].gap_ns += 20_000
    record = pooled(run, other.seal(tmp_path / "two"))
    squares = [float(one.start_sd_percent) ** 2 for one in record.runs]
    assert record.df == 6
    assert float(record.start_sd_percent) == pytest.approx((sum(squares) / 2) ** 0.5, rel=1e-3)


def test_a_run_of_another_host_is_refused_by_what_differs(run: SealedRun, tmp_path: Path) -> None:
    other = calibration(title="Again")
    change = json_edit(lambda document: document.update(cpu_model="Another CPU", memory_bytes=5))
    other.edits["host/identity.json"] = change
    with pytest.raises(Refused, match="another cpu_model, memory_bytes"):
        pooled(run, other.seal(tmp_path / "two"))


def other_metric(builder: RunBuilder) -> RunBuilder:
    """Two labels may decide something, and then have its metric."""
    said = builder.packet["preregistration"]
    assert isinstance(said, dict)
    said["decision"] = {"headline": "wall_rate", "record_to_beat": None, "floor_over_record_percent": None}
    labelled = RunBuilder(order=("A1", "B1", "B2", "A2"), stops=False, packet=builder.packet)
    for leg, plain in zip(labelled.legs, builder.legs, strict=True):
        leg.rows, leg.before, leg.after = plain.rows, plain.before, plain.after
    return labelled


def other_engine(builder: RunBuilder) -> RunBuilder:
    builder.vocabulary = builder.vocabulary.model_copy(update={"engine": "another"})
    return builder


def other_target(builder: RunBuilder) -> RunBuilder:
    said = builder.packet["preregistration"]
    assert isinstance(said, dict)
    said["service"] = {"engine": "vllm"}
    return builder


@pytest.mark.parametrize(
    ("what", "change"), [("metric", other_metric), ("engine", other_engine), ("target", other_target)]
)
def test_runs_of_another_service_or_metric_are_not_pooled(
    run: SealedRun, tmp_path: Path, what: str, change: Callable[[RunBuilder], RunBuilder]
) -> None:
    other = change(calibration(title="Again"))
    with pytest.raises(Refused) as refused:
        pooled(run, other.seal(tmp_path / "two"))
    assert [problem.got for problem in refused.value.problems] == [f"another {what}"]


def test_the_same_run_twice_is_refused(run: SealedRun) -> None:
    with pytest.raises(Refused, match="each run once"):
        pooled(run, run)


def test_another_seal_over_the_same_packet_is_refused(run: SealedRun, tmp_path: Path) -> None:
    copy = calibration()
    copy.leg("A2").rows[0].gap_ns += 20_000
    with pytest.raises(Refused, match="each packet once"):
        pooled(run, copy.seal(tmp_path / "two"))


def test_a_campaign_that_is_no_calibration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="a calibration whose every gate passed"):
        pooled(RunBuilder(stops=False).seal(tmp_path))


def test_a_calibration_with_a_failed_gate_is_refused(tmp_path: Path) -> None:
    builder = calibration()
    builder.leg("A3").rows[0].ids[5] = 499
    with pytest.raises(Refused, match="exact_tokens"):
        pooled(builder.seal(tmp_path))


def test_starts_without_any_spread_are_refused(tmp_path: Path) -> None:
    builder = calibration()
    for leg in builder.legs:
        for row in leg.rows:
            row.gap_ns = 1_000_000
    with pytest.raises(Refused, match="show no spread"):
        pooled(builder.seal(tmp_path))


def test_a_calibration_may_carry_two_labels(tmp_path: Path) -> None:
    builder = calibration()
    labelled = RunBuilder(order=("A1", "B1", "B2", "A2"), stops=False, packet=builder.packet)
    for place, leg in enumerate(labelled.legs):
        for row, plain in zip(leg.rows, builder.legs[place].rows, strict=True):
            row.gap_ns, row.tokens_per_event = plain.gap_ns, plain.tokens_per_event
        leg.after, leg.before = builder.legs[place].after, builder.legs[place].before
    verdict = analyze_run(labelled.seal(tmp_path), analyzer_identity())
    assert verdict.verdict is VerdictKind.CALIBRATION
    assert {one.name for one in verdict.effect} >= {"noise_start_sd", "noise_row_sd"}


def test_a_verdict_names_a_noise_record_of_another_host(run: SealedRun, tmp_path: Path) -> None:
    power = {"noise_record": "noise/n.json", "planned_effect_percent": "2", "alpha": "0.05", "power": "0.8"}
    record = pooled(run)
    builder = RunBuilder(stops=False, packet={"preregistration": {"power": power}}, noise=record.canonical())
    evidence = load_evidence(builder.seal(tmp_path / "own"))
    assert evidence.noise == record
    assert strangeness(record, evidence) == ()
    assert noise_lines(evidence)[0].startswith("noise record bench, of this host: equal starts lie apart")
    told = {one.name for one in noise_use_figures(evidence, CONVENTIONAL)}
    assert told == {"noise_record_start_sd", "effect_in_start_sds"}
    builder.edits["host/identity.json"] = json_edit(lambda document: document.update(kernel="Linux 7"))
    elsewhere = load_evidence(builder.seal(tmp_path / "elsewhere"))
    (line,) = noise_lines(elsewhere)
    assert "of another host or service (kernel differ)" in line
    assert noise_use_figures(elsewhere, CONVENTIONAL) == ()


@pytest.mark.parametrize("spoil", [{"engine": "reference other"}, {"target": "engine:vllm"}])
def test_a_noise_record_of_another_service_is_not_used_and_bars_a_submission(
    run: SealedRun, tmp_path: Path, spoil: dict[str, str]
) -> None:
    power = {"noise_record": "noise/n.json", "planned_effect_percent": "2", "alpha": "0.05", "power": "0.8"}
    record = pooled(run)
    allowed = []
    for name, noise in (("own", record), ("foreign", record.model_copy(update=spoil))):
        builder = RunBuilder(stops=False, packet={"preregistration": {"power": power}}, noise=noise.canonical())
        evidence = load_evidence(builder.seal(tmp_path / name))
        engine = evidence.engine.model_copy(update={"is_stand_in": False})
        key = lane_key(evidence.packet, evidence.marker.host.machine_id_sha256)
        assert key is not None
        marker = evidence.marker.model_copy(update={"lane": Lane(key=key, attempt=1)})
        counted = replace(evidence, engine=engine, marker=marker)
        allowed.append(follow_ups(counted, VerdictKind.RECORD_CANDIDATE)[0])
    assert [bool(one) for one in allowed] == [True, False]
    assert strangeness(noise, evidence) == (*spoil,)
    assert noise_use_figures(evidence, CONVENTIONAL) == ()


@pytest.mark.parametrize("sd", ["-200", "0.0", "9.0"])
def test_a_noise_record_that_contradicts_itself_is_as_none(run: SealedRun, tmp_path: Path, sd: str) -> None:
    power = {"noise_record": "noise/n.json", "planned_effect_percent": "2", "alpha": "0.05", "power": "0.8"}
    forged = pooled(run).model_copy(update={"start_sd_percent": sd})
    builder = RunBuilder(stops=False, packet={"preregistration": {"power": power}}, noise=forged.canonical())
    verdict = analyze_run(builder.seal(tmp_path / "own"), analyzer_identity())
    assert "the registered noise record noise/n.json cannot be read: power says nothing here" in verdict.warnings
    assert not any(one.name == "effect_in_start_sds" for one in verdict.effect)
