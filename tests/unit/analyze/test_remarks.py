from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.judge import headline_metric, judge_gates
from labctl.analyze.load import load_evidence
from labctl.analyze.remarks import expectation_of, follow_ups, warnings_of
from labctl.frozen import canonical_json
from labctl.packet.lane import lane_key
from labctl.packet.model import EndpointPacket
from labctl.prereg.field_types import MetricId
from labctl.prereg.gate_kinds import Pair
from labctl.records.lane import Lane
from labctl.records.verdict import VerdictKind
from tests.fakes.run_builder import RunBuilder, json_edit
from tests.fakes.run_records import MACHINE


def evidence_of(builder: RunBuilder, folder: Path) -> RunEvidence:
    return load_evidence(builder.seal(folder))


def with_packet(evidence: RunEvidence, **changes: object) -> RunEvidence:
    """The same run under a preregistration with other contents."""
    document = evidence.packet.model_dump(mode="json")
    document["preregistration"] |= changes
    return replace(evidence, packet=EndpointPacket.model_validate_json(canonical_json(document)))


@pytest.fixture
def sound(tmp_path: Path) -> RunEvidence:
    return evidence_of(RunBuilder(stops=False), tmp_path)


def test_nothing_expected_is_nothing_scored(sound: RunEvidence) -> None:
    assert expectation_of(with_packet(sound, expectation=None)) == ""


def test_an_expectation_without_every_start_is_not_measured(sound: RunEvidence) -> None:
    assert expectation_of(replace(sound, legs=sound.legs[:1])).endswith("not measured")


@pytest.mark.parametrize(
    ("bounds", "came"),
    [
        (("4", "5"), "as expected"),
        (("5", "6"), "as expected"),
        (("5", "5"), "as expected"),
        (("5.0001", "6"), "below it"),
        (("4", "4.9999"), "above it"),
    ],
)
def test_a_gain_exactly_on_a_bound_is_as_expected(
    sound: RunEvidence, monkeypatch: pytest.MonkeyPatch, bounds: tuple[str, str], came: str
) -> None:
    monkeypatch.setattr("labctl.analyze.remarks.overall_gain_percent", lambda *_: Fraction(5))
    said = expectation_of(with_packet(sound, expectation={"effect_percent": bounds}))
    assert said.endswith(f"measured 5 %: {came}")


def test_the_headline_metric_is_the_decisions_then_the_pairs_then_the_conventional(sound: RunEvidence) -> None:
    registered = sound.packet.preregistration
    pair = Pair(kind="pair", metric=MetricId.WALL_RATE, min_row_wins=1, min_headline_gain_percent="0")
    changed = with_packet(sound, decision=None, gates=[pair.model_dump(mode="json")]).packet.preregistration
    bare = with_packet(sound, decision=None, gates=[{"kind": "exact_tokens", "id": None}]).packet.preregistration
    assert registered.decision is not None
    assert headline_metric(registered) is registered.decision.headline
    assert headline_metric(changed) is MetricId.WALL_RATE
    assert headline_metric(bare) is MetricId.DECODE_RATE_CONVENTIONAL_1_100


def test_flat_survival_of_drafts_is_a_doubt(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B1").after.update(accepted_tokens=396, accepted_per_position=[100, 100, 98, 98])
    evidence = evidence_of(builder, tmp_path)
    told = warnings_of(evidence, judge_gates(evidence, stopped=False))
    assert any(line.startswith("B1: survival of drafts is flat (0.98)") for line in told)


def test_processes_that_had_to_be_killed_are_a_doubt(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.edits["legs/03-B2/postflight.json"] = json_edit(lambda value: value.update(killed=[61]))
    evidence = evidence_of(builder, tmp_path)
    told = warnings_of(evidence, judge_gates(evidence, stopped=False))
    assert any("processes of B2 did not end" in line for line in told)


def test_arms_that_map_other_files_are_a_doubt_and_no_fault(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    for name in ("B1", "B2"):
        builder.leg(name).maps += b"/usr/lib/libdraft.so\t1 9\n"
    evidence = evidence_of(builder, tmp_path)
    judged = judge_gates(evidence, stopped=False)
    assert judged.failed() == ()
    assert any("/usr/lib/libdraft.so" in line for line in warnings_of(evidence, judged))


def test_files_that_a_start_makes_for_itself_are_no_difference(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").maps += b"/dev/shm/x.so\t1 9\n/memfd:jit (deleted)\t1 8\n/usr/lib/old.so (deleted)\t1 7\n"
    evidence = evidence_of(builder, tmp_path)
    order = evidence.legs[2].order
    assert order is not None
    own = replace(evidence.legs[2], maps=(*(evidence.legs[2].maps or ()), f"{order.paths.scratch}/cache/k123.so\t1 6"))
    judged = judge_gates(replace(evidence, legs=(*evidence.legs[:2], own, evidence.legs[3])), stopped=False)
    assert judged.failed() == ()


def test_a_short_sound_run_on_a_real_engine_has_no_doubt_but_its_design(sound: RunEvidence) -> None:
    engine = type(sound.engine).model_validate(sound.engine.model_dump(by_alias=True) | {"is_stand_in": False})
    evidence = replace(sound, engine=engine)
    (line,) = warnings_of(evidence, judge_gates(evidence, stopped=False))
    assert line.startswith("4 starts, A1 B1 B2 A2: a drift that is quadratic")


def test_only_a_record_candidate_on_a_real_engine_may_be_submitted(sound: RunEvidence) -> None:
    engine = type(sound.engine).model_validate(sound.engine.model_dump(by_alias=True) | {"is_stand_in": False})
    key = lane_key(sound.packet, MACHINE)
    assert key is not None
    uncounted = replace(sound, engine=engine)
    counted = sound.marker.model_copy(update={"lane": Lane(key=key, attempt=1)})
    real = replace(uncounted, marker=counted)
    allowed, denied = follow_ups(real, VerdictKind.RECORD_CANDIDATE)
    assert allowed[0].startswith("submission")
    assert "submission to a board" not in denied
    for evidence, kind in (
        (replace(sound, marker=counted), VerdictKind.RECORD_CANDIDATE),
        (uncounted, VerdictKind.RECORD_CANDIDATE),
        (with_packet(real, excluded=["submission"]), VerdictKind.RECORD_CANDIDATE),
        (real, VerdictKind.EXPLORATORY_PASS),
        (real, VerdictKind.INVALID),
    ):
        allowed, denied = follow_ups(evidence, kind)
        assert not any(line.startswith("submission") for line in allowed)
        assert "submission to a board" in denied


def test_a_rehearsal_on_the_embedded_endpoint_says_that_the_service_was_not_exercised(sound: RunEvidence) -> None:
    document = sound.packet.model_dump(mode="json") | {"kind": "rehearsal", "service": "embedded"}
    evidence = replace(sound, packet=EndpointPacket.model_validate_json(canonical_json(document)))
    told = warnings_of(evidence, judge_gates(evidence, stopped=False))
    assert any("your service command was NOT exercised" in line and "--service real" in line for line in told)
    assert not any("NOT exercised" in line for line in warnings_of(sound, judge_gates(sound, stopped=False)))
