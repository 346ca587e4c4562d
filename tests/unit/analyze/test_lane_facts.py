"""Both analyzers read lane and order from the sealed run, and call a marker that says otherwise a contradiction."""

from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.frozen import canonical_json
from labctl.packet.lane import lane_key
from labctl.packet.tool import analyzer_identity
from labctl.prereg.designs import Mirror, drawn_order, mirrored
from labctl.records.lane import Lane
from labctl.records.verdict import Verdict, VerdictKind
from labctl.standalone import analyze_run as standalone
from tests.fakes.run_builder import NONCE, RunBuilder
from tests.fakes.run_records import MACHINE

ABBA = ("A1", "B1", "B2", "A2")


def judged_twice(builder: RunBuilder, folder: Path) -> tuple[Verdict, Verdict]:
    run = builder.seal(folder)
    other = Verdict.from_json(canonical_json(standalone.judge_run(run.root)), "standalone")
    return analyze_run(run, analyzer_identity()), other


def in_lane(attempt: int) -> RunBuilder:
    builder = RunBuilder()
    key = lane_key(builder.frozen_packet(), MACHINE)
    assert key is not None
    builder.lane = Lane(key=key, attempt=attempt)
    return builder


def test_both_analyzers_say_the_attempt_and_the_chance_of_luck(tmp_path: Path) -> None:
    own, other = judged_twice(in_lane(3), tmp_path)
    assert disagreements(own, other) == ()
    for verdict in (own, other):
        told = {one.name: one.value for one in verdict.effect}
        assert told["lane_attempt"] == "3"
        assert told["lucky_pass_chance"] == "91/216"
    (line,) = [line for line in own.warnings if line.startswith("attempt 3 in its lane (engine reference")]
    assert "42.13 %" in line


def test_a_marker_with_another_lane_makes_the_run_invalid_for_both(tmp_path: Path) -> None:
    builder = in_lane(1)
    assert builder.lane is not None
    key = type(builder.lane.key)(target="engine:other", metric=builder.lane.key.metric, machine_id_sha256=MACHINE)
    builder.lane = Lane(key=key, attempt=1)
    for verdict in judged_twice(builder, tmp_path):
        assert verdict.verdict is VerdictKind.INVALID
        assert any("lane of the marker" in reason for reason in verdict.because)


def test_a_run_from_before_lanes_were_kept_says_nothing_of_one(tmp_path: Path) -> None:
    for verdict in judged_twice(RunBuilder(), tmp_path):
        assert not any(one.name == "lane_attempt" for one in verdict.effect)


@pytest.mark.parametrize("order", [ABBA, mirrored(ABBA)])
def test_both_analyzers_toss_the_sealed_coin_again(tmp_path: Path, order: tuple[str, ...]) -> None:
    drawn = drawn_order(order, Mirror.SEALED_COIN, NONCE)
    schedule = {"order": list(order), "mirror": "sealed_coin"}
    builder = RunBuilder(order=drawn, packet={"preregistration": {"schedule": schedule}})
    own, other = judged_twice(builder, tmp_path)
    assert disagreements(own, other) == ()
    assert own.verdict is not VerdictKind.INVALID
    assert [start.leg for start in own.starts] == list(drawn)


def test_starts_in_another_order_than_the_coins_make_the_run_invalid_for_both(tmp_path: Path) -> None:
    drawn = drawn_order(ABBA, Mirror.SEALED_COIN, NONCE)
    schedule = {"order": list(ABBA), "mirror": "sealed_coin"}
    builder = RunBuilder(order=mirrored(drawn), packet={"preregistration": {"schedule": schedule}})
    for verdict in judged_twice(builder, tmp_path):
        assert verdict.verdict is VerdictKind.INVALID
