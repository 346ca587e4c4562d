"""A probe leg as a process: every rank on its card, bounded in time, and none of them left."""

import json
import signal
from pathlib import Path

import pytest

from labctl.records.leg import StopCause
from labctl.records.worker import ProbePostflight
from tests.fakes.card_leg import PLAIN_RANK, CardLegPlace, run_order, running
from tests.fakes.leg import RunningLeg, codes_of


@pytest.fixture
def here(tmp_path: Path) -> CardLegPlace:
    return CardLegPlace.new(tmp_path)


def postflight(here: CardLegPlace) -> ProbePostflight:
    return ProbePostflight.from_json(here.files.postflight.read_bytes(), "postflight.json")


def test_every_rank_runs_with_its_own_environment_on_its_own_card(here: CardLegPlace) -> None:
    order = here.probe_order()
    assert run_order(here, order) == (0, "")
    assert (here.exit().cause, here.exit().rows_completed) == (StopCause.COMPLETED, 2)
    for rank in range(2):
        told = json.loads(here.files.rank_log(rank).read_text())
        ended = here.rank_exit(rank)
        assert told["environment"] == order.environment | order.rank_environment[rank]
        assert ended.seen is not None
        assert ended.seen.argv == (*order.argv, str(rank))
        assert [card.bus_id for card in ended.visible.cards] == [order.cards[rank].bus_id]
        assert (ended.exit_status, ended.timed_out, ended.killed) == (0, False, False)
        assert here.files.rank_stages(rank).exists()
    assert {state.after.bus_id for state in postflight(here).cards} == {card.bus_id for card in order.cards}
    assert not postflight(here).timed_out
    here.assert_closed()
    assert not here.scratch.exists()


def test_a_rank_that_fails_is_a_result_and_the_leg_has_not_failed(here: CardLegPlace) -> None:
    assert run_order(here, here.probe_order("--exit", "1"))[0] == 0
    assert [here.rank_exit(rank).exit_status for rank in range(2)] == [0, 3]
    assert here.exit().rows_completed == 1


def test_a_rank_past_the_time_of_the_probe_is_killed_and_said_to_be(here: CardLegPlace) -> None:
    assert run_order(here, here.probe_order("--hang", "0", timeouts={"stage_s": 1, "total_s": 1}))[0] == 0
    late, other = here.rank_exit(0), here.rank_exit(1)
    assert (late.timed_out, late.killed, late.exit_status) == (True, True, -signal.SIGKILL)
    assert (other.timed_out, other.killed, other.exit_status) == (False, False, 0)
    assert postflight(here).timed_out
    assert running(PLAIN_RANK) == []


def test_a_process_that_outlives_its_rank_is_ended_and_told(here: CardLegPlace) -> None:
    assert run_order(here, here.probe_order("--leave", "1"))[0] == 0
    assert [here.rank_exit(rank).exit_status for rank in range(2)] == [0, 0]
    (outlived,) = postflight(here).outlived
    assert not Path(f"/proc/{outlived}").exists()
    assert postflight(here).processes_left == ()


def test_a_rank_that_prints_without_end_fails_the_leg(here: CardLegPlace) -> None:
    order = here.probe_order("--talk", "1")
    assert run_order(here, order)[0] == 4
    assert codes_of(here.exit().problems) == ["LOG_LIMIT"]
    assert here.rank_exit(1).log_bytes == order.limits.log_limit_bytes
    assert running(PLAIN_RANK) == []


def test_a_cut_lifeline_ends_every_rank(here: CardLegPlace) -> None:
    with RunningLeg.start(here, here.probe_order("--hang", "1", timeouts={"total_s": 60})) as leg:
        leg.await_event("rank")
        leg.cut_lifeline()
        assert leg.wait() == 4
    assert codes_of(here.exit().problems) == ["LIFELINE_CUT"]
    assert not here.rank_exit(1).timed_out
    assert running(PLAIN_RANK) == []


def test_ranks_on_a_card_that_is_another_one_are_not_started(here: CardLegPlace) -> None:
    order = here.probe_order()
    swapped = order.model_copy(
        update={"cards": tuple(card.model_copy(update={"identity": "cpu:9"}) for card in order.cards)}
    )
    assert run_order(here, swapped)[0] == 4
    assert set(codes_of(here.exit().problems)) == {"WRONG_CARD"}
    assert not here.files.rank_log(0).exists()


def test_a_taken_port_refuses_the_leg(here: CardLegPlace) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", here.port))
        other.listen()
        assert run_order(here, here.probe_order())[0] == 3
    assert codes_of(here.exit().problems) == ["PORT_TAKEN"]
