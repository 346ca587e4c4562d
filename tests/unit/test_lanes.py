"""Attempts are counted from the ledger: a campaign under another name is the next attempt at the same thing."""

from pathlib import Path

import pytest

from labctl.lanes import ANY_LANE, consumptions, next_lane
from labctl.ledger import LedgerEvent, append_ledger, read_ledger
from labctl.packet.lane import lane_key
from labctl.packet.model import Packet
from labctl.rundir import AuthorizationPaths
from tests.fakes.consuming import consume
from tests.fakes.packets import make_packet, write_packet_folder
from tests.fakes.sealed_run import DEAD_HOST

MACHINE = DEAD_HOST.machine_id_sha256


@pytest.fixture
def authorization(tmp_path: Path) -> AuthorizationPaths:
    root = tmp_path / "authorization"
    root.mkdir(mode=0o700)
    return AuthorizationPaths(root)


def frozen(authorization: AuthorizationPaths, **changes: object) -> Packet:
    packet = make_packet(**changes)
    write_packet_folder(authorization.packet(packet.id).root, packet)
    return packet


def consume_one(authorization: AuthorizationPaths, run: str, **changes: object) -> int | None:
    """Consume a packet of these changes; which attempt its marker says it is."""
    packet = frozen(authorization, **changes)
    lane = consume(authorization.root, packet, run).marker.lane
    return None if lane is None else lane.attempt


def test_a_campaign_under_another_name_is_the_next_attempt(authorization: AuthorizationPaths) -> None:
    names = ("first-idea", "second-idea", "entirely-new")
    found = [consume_one(authorization, f"run-{name}", preregistration={"id": name}) for name in names]
    assert found == [1, 2, 3]


def test_another_metric_or_model_is_another_lane(authorization: AuthorizationPaths) -> None:
    model = {"name": "target", "manifest_sha256": "9" * 64, "files": 1, "bytes": 1}
    assert consume_one(authorization, "one") == 1
    wall = {"headline": "wall_rate", "reported_value": "lower_candidate_start"}
    assert consume_one(authorization, "two", preregistration={"decision": wall}) == 1
    assert consume_one(authorization, "three", models=[model]) == 1
    assert consume_one(authorization, "four", models=[model], preregistration={"id": "same-model"}) == 2


def test_rehearsals_and_calibrations_are_no_attempts(authorization: AuthorizationPaths) -> None:
    assert consume_one(authorization, "rehearsed", kind="rehearsal") is None
    calibration = {"class": "calibration", "decision": None, "treatment": None, "schedule": {"order": ["A1", "A2"]}}
    assert consume_one(authorization, "calibrated", preregistration=calibration) is None
    labelled = {"class": "calibration", "treatment": None}
    assert consume_one(authorization, "labelled", preregistration=labelled) is None
    assert consume_one(authorization, "real") == 1


def test_the_ledger_holds_the_lane_so_that_a_removed_packet_still_counts(authorization: AuthorizationPaths) -> None:
    consume_one(authorization, "one")
    packet = make_packet()
    key = lane_key(packet, MACHINE)
    assert key is not None
    assert read_ledger(authorization.ledger)[0].lane_sha256 == key.sha256
    authorization.packet(packet.id).packet.unlink()
    lane = next_lane(packet, authorization, MACHINE)
    assert lane is not None
    assert lane.attempt == 2


def test_a_line_from_before_lanes_were_kept_counts_by_its_packet(authorization: AuthorizationPaths) -> None:
    packet = frozen(authorization)
    append_ledger(authorization.ledger, LedgerEvent("consumed", packet.id, "old", "old-1", "0" * 64, 1))
    other = frozen(authorization, preregistration={"id": "another"})
    lane = next_lane(other, authorization, MACHINE)
    assert lane is not None
    assert lane.attempt == 2


def test_a_consumption_that_nobody_can_tell_counts_for_every_lane(authorization: AuthorizationPaths) -> None:
    append_ledger(authorization.ledger, LedgerEvent("consumed", "5" * 64, "gone", "gone-1", "0" * 64, 1))
    assert [one.lane for one in consumptions(authorization, MACHINE)] == [ANY_LANE]
    assert consume_one(authorization, "mine") == 2


def test_another_machine_is_another_lane(authorization: AuthorizationPaths) -> None:
    consume_one(authorization, "one")
    lane = next_lane(make_packet(), authorization, "b" * 64)
    assert lane is not None
    assert lane.attempt == 1
