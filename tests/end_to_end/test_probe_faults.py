"""Classes of a probe, each produced by a rank that really has the fault; `make faults` goes through all of them."""

from pathlib import Path

import pytest

from tests.faults.probe_classes import FAULTS, RANKS, Classified, class_of

FEW = (
    "a rank is killed before the group is there",
    "a rank hangs before the collective",
    "a rank brings something else",
    "a rank ends badly after all",
    "a rank's record is missing",
)


@pytest.mark.parametrize("name", FEW)
def test_a_fault_of_one_rank_gives_its_own_class(tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    status = 5 if fault.stage_class == "harness_failure" else 6
    assert class_of(tmp_path, name) == Classified(fault.stage_class, status, "sealed_completed", fault.clean)


def test_every_class_has_a_fault_and_no_other_is_expected() -> None:
    from labctl.analyze.probe.stages import CLASSES

    others = {"harness_failure", "process_exit_failure", "pass"}
    assert {fault.stage_class for fault in FAULTS.values()} == {one.value for one in CLASSES.values()} | others
    assert all(fault.clean <= RANKS for fault in FAULTS.values())
