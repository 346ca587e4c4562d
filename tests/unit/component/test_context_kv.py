"""The example component, run whole by a real worker process on CPUs."""

import base64
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from labctl.component import stream
from labctl.component.stopwatch import Stopwatch
from labctl.component.worker import Call, Draw, Setup
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.load import load_any_preregistration
from labctl.records.microcase import MustRaiseRecord, MustStayInertRecord
from tests.fakes.component_worker import NONCE, WorkerRun, run_worker, work_of
from tests.fakes.worker_gates import failed_gates

CAMPAIGN = Path(__file__).parents[3] / "campaigns" / "context-kv"
SIZES = {"layers": 2, "hidden": 64, "kv_heads": 2, "head_size": 16}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> WorkerRun:
    folder = tmp_path_factory.mktemp("context-kv")
    return run_worker(folder, CAMPAIGN / "worker.py", work_of(CAMPAIGN / "cpu.yaml"), (CAMPAIGN / "component.json",))


@pytest.fixture
def component(tmp_path: Path) -> Iterator[ModuleType]:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "component.json").write_bytes((CAMPAIGN / "component.json").read_bytes())
    path = tmp_path / "worker.py"
    path.write_bytes((CAMPAIGN / "worker.py").read_bytes())
    spec = importlib.util.spec_from_file_location("context_kv_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def candidate(component: ModuleType, arm: str = "no_bias") -> Any:  # noqa: ANN401 (a class of the worker file)
    weights = component.draw_weights(Draw(1, "cpu", Stopwatch()), SIZES)
    return component.Persistent(Setup(arm, SIZES, weights, Path(), torch.device("cpu")))


def call(component: ModuleType, width: int, seed: int = 1) -> Call:
    sizes = {**SIZES, "width": width}
    draw = Draw(seed, "cpu", Stopwatch())
    caches = list(component.draw_caches(draw, sizes).values())
    return Call(sizes, component.draw_inputs(draw, sizes), caches, lambda _name, _tensor: None)


def test_a_card_gives_384_exact_equalities(run: WorkerRun) -> None:
    pairs = [pair for row in run.rows for pair in (*row.boundaries, *row.caches)]
    assert len(pairs) == 32 * (6 + 6)
    assert all(pair.control.sha256 == pair.candidate.sha256 and pair.first_difference is None for pair in pairs)
    assert len({pair.control.sha256 for pair in pairs}) == len(pairs)


def test_every_gate_over_the_workers_records_passes(run: WorkerRun) -> None:
    said = load_any_preregistration(CAMPAIGN / "cpu.yaml").model
    assert isinstance(said, ComponentPreregistration)
    assert failed_gates(said, run) == {}


def test_the_second_half_of_the_packed_buffer_starts_where_its_view_does(run: WorkerRun) -> None:
    row = next(row for row in run.rows if row.case == "w1")
    offsets = {pair.name: pair.candidate.storage_offset for pair in row.boundaries}
    assert offsets["projected_k"] == 0
    assert offsets["projected_v"] == 6 * 1 * 2 * 128


def test_no_accelerator_is_claimed_for_the_capture_on_cpus(run: WorkerRun) -> None:
    refused = next(one for one in run.component.microcases if isinstance(one, MustRaiseRecord))
    assert refused.condition == "jit_trace"
    assert (refused.exception, refused.state_before) == ("RuntimeError", refused.state_after)


def test_a_width_of_nine_owns_nothing(run: WorkerRun) -> None:
    inert = next(one for one in run.component.microcases if isinstance(one, MustStayInertRecord))
    assert (inert.owned, inert.row.buffers) == ((), ())
    assert inert.state_before.buffers == inert.state_after.buffers
    assert all(pair.control.shape[1] == 9 for pair in inert.row.boundaries[:2])


def test_a_whole_cache_follows_from_the_seed_and_the_sampled_bytes(run: WorkerRun) -> None:
    row = next(row for row in run.rows if row.sample)
    assert row.sample is not None
    drawn = run.component.caches[row.sample.cache].tensor
    cache = bytearray(stream.uniform_bytes(f"20260725/{drawn.name}", drawn.bytes // 2, "bfloat16", -8, 0))
    slot_bytes, plane_bytes = 2 * 128 * 2, drawn.bytes // 2
    raw = base64.b64decode(row.sample.base64)
    slots = stream.distinct_integers(f"{row.row_seed}/slots", len(raw) // (2 * slot_bytes), drawn.shape[1])
    for place, slot in enumerate(slots):
        for plane in range(2):
            start = (2 * place + plane) * slot_bytes
            at = plane * plane_bytes + slot * slot_bytes
            cache[at : at + slot_bytes] = raw[start : start + slot_bytes]
    found = row.caches[row.sample.cache]
    assert hashlib.sha256(cache).hexdigest() == found.candidate.sha256
    assert hashlib.sha256(cache + f"/{NONCE}/{row.row}".encode()).hexdigest() == found.challenge_sha256


def shown_by(component: ModuleType, arm: str) -> dict[str, torch.Tensor]:
    shown: dict[str, torch.Tensor] = {}

    def keep(name: str, tensor: torch.Tensor) -> None:
        shown[name] = tensor.clone()

    candidate(component, arm)(replace(call(component, 2), at=keep))
    return shown


@pytest.mark.parametrize("field", ["states", "projected", "packed", "normalized_k"])
def test_a_workspace_that_moved_is_a_hard_error(component: ModuleType, field: str) -> None:
    side = candidate(component)
    side(call(component, 3))
    side.workspaces[3] = replace(side.workspaces[3], **{field: getattr(side.workspaces[3], field).clone()})
    with pytest.raises(RuntimeError, match=f"drift: 3.{field} is"):
        side(call(component, 3, seed=2))


@pytest.mark.parametrize("name", ["hidden_norm", "kv_proj", "k_norm", "rope"])
def test_a_weight_that_moved_is_a_hard_error(component: ModuleType, name: str) -> None:
    side = candidate(component)
    side(call(component, 1))
    side.static[name] = side.static[name].clone()
    with pytest.raises(RuntimeError, match=f"drift: {name} is"):
        side(call(component, 1, seed=2))


def test_an_input_in_a_workspace_is_a_hard_error(component: ModuleType) -> None:
    side = candidate(component)
    side(call(component, 2))
    first = call(component, 2, seed=2)
    aliased = {**first.inputs, "context_states": side.workspaces[2].states[0]}
    with pytest.raises(RuntimeError, match="overlap"):
        side(replace(first, inputs=aliased))


def test_a_workspace_is_the_same_object_in_every_call(component: ModuleType) -> None:
    side = candidate(component)
    side(call(component, 8))
    first = side.owned({**SIZES, "width": 8})
    side(call(component, 8, seed=2))
    assert all(tensor is first[name] for name, tensor in side.owned({**SIZES, "width": 8}).items())


def test_the_arms_differ_by_the_bias_alone(component: ModuleType) -> None:
    plain, biased = (shown_by(component, arm) for arm in ("no_bias", "synthetic_bias"))
    assert torch.equal(plain["normalized_states"], biased["normalized_states"])
    bias = component.draw_weights(Draw(1, "cpu", Stopwatch()), SIZES)["kv_bias"]
    assert torch.equal(plain["projected"] + bias, biased["projected"])
