"""Real worker processes, honest and lying, before the gates that judge their records."""

from pathlib import Path

import pytest

from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.load import load_any_preregistration
from tests.fakes.component_worker import WorkerRun, Zygote, work_of
from tests.fakes.worker_gates import failed_gates
from tests.fakes.worker_lies import CAMPAIGN, LIES, write_worker

# Which gate over a worker's own records finds a spoiled worker out.
FOUND_BY = {
    "flipped_bit": "rows_exact",
    "rounded_boundary": "rows_exact",
    "other_slot": "complete_rows",
    "new_tensors_each_time": "pointers",
    "overlapping_widths": "pointers",
    "control_as_candidate": "pointers",
    "changed_weight": "weights_unchanged",
    "changed_input": "complete_rows",
    "constant_pointers": "pointers",
    "invented_pointers": "pointers",
    "constant_digests": "complete_rows",
    "pretended_capture": "microcases",
    "invented_capture": "microcases",
    "shared_caches": "pointers",
    "same_inputs_again": "complete_rows",
    "used_at_inert_size": "pointers",
}
# Lies about warnings show in the channels and the log, which the leg holds.
ABOUT_WARNINGS = {"silenced_warnings", "redirected_warnings", "hidden_warnings"}


def campaign() -> ComponentPreregistration:
    said = load_any_preregistration(CAMPAIGN).model
    assert isinstance(said, ComponentPreregistration)
    return said


def run_scaled_rows(zygote: Zygote, folder: Path, lie: str | None = None) -> WorkerRun:
    run = zygote.run(folder, write_worker(folder, lie), work_of(CAMPAIGN))
    assert run.exit_status == 0, run.log
    return run


def test_every_lie_is_tried() -> None:
    assert set(FOUND_BY) | ABOUT_WARNINGS == set(LIES)


def test_an_honest_worker_passes_every_gate(tmp_path: Path, zygote: Zygote) -> None:
    run = run_scaled_rows(zygote, tmp_path)
    assert failed_gates(campaign(), run) == {}
    assert run.component.channels_before == run.component.channels_after
    assert run.component.warnings == ()


@pytest.mark.parametrize(("lie", "gate"), FOUND_BY.items())
def test_a_lying_worker_is_found_out(tmp_path: Path, zygote: Zygote, lie: str, gate: str) -> None:
    assert gate in failed_gates(campaign(), run_scaled_rows(zygote, tmp_path, lie))


@pytest.mark.parametrize("lie", ["silenced_warnings", "redirected_warnings"])
def test_a_worker_that_silences_warnings_changes_the_channels(tmp_path: Path, zygote: Zygote, lie: str) -> None:
    record = run_scaled_rows(zygote, tmp_path, lie).component
    assert record.channels_before != record.channels_after


def test_a_warning_that_is_hidden_from_the_record_stands_in_the_log(tmp_path: Path, zygote: Zygote) -> None:
    run = run_scaled_rows(zygote, tmp_path, "hidden_warnings")
    assert run.log.count("RuntimeWarning") == 8 + 2  # rows, and one call of each microcase
    assert run.component.warnings == ()


def test_the_one_flipped_bit_is_named_with_its_place(tmp_path: Path, zygote: Zygote) -> None:
    rows = run_scaled_rows(zygote, tmp_path, "flipped_bit").rows
    differing = [(row.row, pair) for row in rows for pair in (*row.boundaries, *row.caches) if pair.first_difference]
    [(number, pair)] = differing
    difference = pair.first_difference
    assert difference is not None
    assert (number, pair.name, difference.index[0], difference.index[2]) == (7, "cache1", 1, 5)
    assert int(difference.expected_bits, 16) ^ int(difference.actual_bits, 16) == 1
    assert difference.differing_elements == 1
