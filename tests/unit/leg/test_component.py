"""A component leg as a process: its worker is bounded, looked at from outside, and never outlives it."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from labctl.digest import sha256_file
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Discovery
from labctl.records.leg import StopCause
from tests.fakes.card_leg import PLAIN_WORKER, CardLegPlace, found_cards, run_order, running
from tests.fakes.leg import RunningLeg, codes_of
from tests.fakes.xpu_smi import four_cards, install

INTEL = Cards(vendor=CardVendor.INTEL, count=4, identities="discover")


@pytest.fixture
def here(tmp_path: Path) -> CardLegPlace:
    return CardLegPlace.new(tmp_path)


def test_a_completed_leg_leaves_every_record_and_nothing_else(here: CardLegPlace) -> None:
    order = here.component_order()
    assert run_order(here, order) == (0, "")
    ended = here.exit()
    assert (ended.leg, ended.cause, ended.problems, ended.rows_completed) == ("card0", StopCause.COMPLETED, (), 4)
    process = here.worker_process()
    assert process.root is not None
    assert process.root.argv == order.argv
    assert process.root.environment == order.environment
    assert process.root.environment_other == ()
    assert (process.pauses, process.rows_seen, process.tree) == (1, 4, ())
    assert process.observed_mono_ns is not None
    assert process.observed_mono_ns > process.started_mono_ns
    assert b"[heap]" in here.files.maps.read_bytes()
    postflight = here.worker_postflight()
    assert (postflight.exit_status, postflight.timed_out, postflight.stopped_by_us) == (0, False, False)
    assert (postflight.killed, postflight.processes_left, postflight.shared_memory_left) == ((), (), ())
    assert (postflight.log_sha256, postflight.log_bytes) == sha256_file(here.files.worker_log)
    assert here.files.log.read_bytes() == b""
    here.assert_closed()
    assert not here.scratch.exists()


def test_the_worker_runs_on_its_card_alone_and_the_leg_says_so(here: CardLegPlace) -> None:
    order = here.component_order("--tell-environment", card=1)
    assert run_order(here, order) == (0, "")
    told = json.loads(here.files.worker_log.read_text())
    assert told == {"environment": order.environment, "cpus": list(here.worker_process().cpus)}
    discovery = Discovery.from_json(here.files.discovery.read_bytes(), "discovery.json")
    assert [card.bus_id for card in discovery.cards] == [order.card.bus_id]
    assert list(discovery.filtered_by) == ["sched_affinity"]


@pytest.mark.parametrize(
    ("misbehaviour", "code", "words"),
    [
        (("--die", str(int(signal.SIGKILL))), "WORKER_FAILED", "signal SIGKILL"),
        (("--fail", "4"), "WORKER_FAILED", "exit status 4"),
        (("--talk", str(1 << 18)), "LOG_LIMIT", "more"),
    ],
)
def test_a_worker_that_does_not_complete_fails_the_leg_and_names_its_card(
    here: CardLegPlace, misbehaviour: tuple[str, ...], code: str, words: str
) -> None:
    order = here.component_order(*misbehaviour)
    assert run_order(here, order)[0] == 4
    (problem,) = here.exit().problems
    assert codes_of((problem,)) == [code]
    assert problem.startswith(f"the worker on card {order.card.identity}: ")
    assert words in problem
    assert here.exit().rows_completed == 1
    assert here.worker_process().observed_mono_ns is None
    assert here.worker_postflight().log_bytes <= order.limits.log_limit_bytes
    here.assert_closed()
    assert running(PLAIN_WORKER) == []


def test_a_worker_past_its_time_is_killed_with_all_that_it_put_aside(here: CardLegPlace) -> None:
    order = here.component_order("--hang", limits={"timeout_s": 1})
    assert run_order(here, order)[0] == 4
    assert codes_of(here.exit().problems) == ["WORKER_TIMEOUT"]
    assert here.exit().cause is StopCause.WORKER
    postflight = here.worker_postflight()
    assert (postflight.timed_out, postflight.stopped_by_us, postflight.exit_status) == (True, True, -signal.SIGKILL)
    assert len(postflight.killed) >= 1
    assert postflight.processes_left == ()
    assert running(PLAIN_WORKER) == []


def test_a_process_that_outlives_the_worker_is_ended_and_told(here: CardLegPlace) -> None:
    assert run_order(here, here.component_order("--leave"))[0] == 0
    (outlived,) = here.worker_postflight().outlived
    assert not Path(f"/proc/{outlived}").exists()


def test_a_worker_that_takes_too_much_memory_fails_by_itself(here: CardLegPlace) -> None:
    order = here.component_order("--hoard", str(1 << 30), limits={"memory_limit_bytes": 256 << 20})
    assert run_order(here, order)[0] == 4
    (problem,) = here.exit().problems
    assert "MemoryError" in problem


def test_the_same_worker_completes_where_memory_is_not_bounded(here: CardLegPlace) -> None:
    assert run_order(here, here.component_order("--hoard", str(1 << 28)))[0] == 0


def test_a_worker_that_never_pauses_was_never_observed(here: CardLegPlace) -> None:
    assert run_order(here, here.component_order("--never-pause"))[0] == 0
    process = here.worker_process()
    assert (process.pauses, process.observed_mono_ns) == (0, None)
    assert process.root is not None
    assert not here.files.maps.exists()


def test_a_cut_lifeline_ends_the_worker_in_order(here: CardLegPlace) -> None:
    with RunningLeg.start(here, here.component_order("--hang")) as leg:
        leg.await_event("started")
        leg.cut_lifeline()
        assert leg.wait() == 4
    assert codes_of(here.exit().problems) == ["LIFELINE_CUT"]
    assert here.worker_postflight().stopped_by_us
    assert running(PLAIN_WORKER) == []


def test_a_killed_leg_leaves_no_worker(here: CardLegPlace) -> None:
    with RunningLeg.start(here, here.component_order("--hang")) as leg:
        leg.await_event("started")
        os.kill(leg.worker_pid, signal.SIGKILL)
        assert leg.wait() == 4
    assert not here.files.exit.exists()
    assert running(PLAIN_WORKER) == []


def test_a_leg_that_sees_another_card_starts_no_worker(here: CardLegPlace) -> None:
    order = here.component_order(card=1)
    other = found_cards(order.selection, order.devices)[0]
    changed = order.card.model_dump(mode="json") | {"identity": other.identity}
    order = here.component_order(card=1).model_copy(
        update={"card": type(order.card).model_validate_json(_json(changed))}
    )
    assert run_order(here, order)[0] == 4
    assert set(codes_of(here.exit().problems)) == {"WRONG_CARD"}
    assert here.files.discovery.exists()
    assert not here.files.worker_log.exists()


def test_a_changed_file_of_the_export_is_not_run(here: CardLegPlace) -> None:
    (here.root / "code").mkdir()
    (here.root / "code" / "worker.py").write_text("pass\n")
    order = here.component_order(inputs={"worker.py": "3" * 64})
    assert run_order(here, order)[0] == 3
    assert codes_of(here.exit().problems) == ["FILE_DRIFT"]
    assert not here.files.worker_log.exists()


@pytest.mark.parametrize("card", range(4))
def test_every_filtered_card_is_renumbered_to_zero_and_still_bound_to_itself(here: CardLegPlace, card: int) -> None:
    devices = Devices(xpu_smi=str(install(here.root / "tool", four_cards())), timeout_s=20)
    order = here.component_order(cards=INTEL, devices=devices, card=card)
    assert run_order(here, order) == (0, "")
    discovery = Discovery.from_json(here.files.discovery.read_bytes(), "discovery.json")
    assert [(one.identity, one.index) for one in discovery.cards] == [(order.card.identity, 0)]
    assert order.card.index == card


def test_a_mask_that_meets_another_card_is_found_before_the_worker_starts(here: CardLegPlace) -> None:
    devices = Devices(xpu_smi=str(install(here.root / "tool", four_cards())), timeout_s=20)
    order = here.component_order(cards=INTEL, devices=devices, card=1)
    wrong = order.model_copy(update={"environment": order.environment | {"ZE_AFFINITY_MASK": "2"}})
    assert run_order(here, wrong)[0] == 4
    assert set(codes_of(here.exit().problems)) == {"WRONG_CARD"}
    assert not here.files.worker_log.exists()


def test_a_program_that_does_not_start_fails_the_leg(here: CardLegPlace) -> None:
    order = here.component_order(argv=[f"{sys.executable}-absent"])
    assert run_order(here, order)[0] == 4
    assert codes_of(here.exit().problems) == ["WORKER_FAILED"]
    here.assert_closed()


def _json(document: dict[str, object]) -> str:
    return json.dumps(document)
