"""One row: fresh inputs, the control, the candidate, and both recorded at every boundary and in every cache."""

import base64
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from labctl.component.bench import Bench
from labctl.component.order import Case
from labctl.component.stopwatch import Stopwatch
from labctl.component.tensors import (
    Record,
    challenged_record,
    content_sha256,
    first_difference,
    host_copy,
    on_host,
    place_records,
    raw_bytes,
    same_bits,
    snapshot_record,
)
from labctl.component.worker import Call, Draw

SAMPLE_LIMIT_BYTES = 2048


@dataclass(frozen=True)
class OpenRow:
    """A row whose inputs are drawn and whose caches are as at first; nothing has run."""

    number: int
    arm: str
    case: Case
    repeat: int
    seed: int
    inputs: Mapping[str, Tensor]
    draw: Draw
    started_mono_ns: int
    kept: dict[int, Tensor] = field(default_factory=dict)

    def kept_slots(self, extent: int, name: str) -> Tensor:
        """Slots that the row may not write to, of so many."""
        if extent not in self.kept:
            written = set(self.inputs[name].tolist())
            self.kept[extent] = torch.tensor([slot for slot in range(extent) if slot not in written], dtype=torch.int64)
        return self.kept[extent]


class Boundaries(ABC):
    """What one side shows at the boundaries; each once, in the order of the declaration."""

    def __init__(self, names: Sequence[str], watch: Stopwatch) -> None:
        self._names = names
        self._watch = watch
        self.records: list[Record] = []
        self._alive: list[Tensor] = []  # or the candidate's first buffers could lie where the control's tensors were

    def at(self, name: str, tensor: Tensor) -> None:
        """Record a boundary as it is now; later writes to the tensor do not change the record."""
        with self._watch:
            expected = self._names[len(self.records)] if len(self.records) < len(self._names) else "no more boundaries"
            if name != expected:
                message = f"the boundary {name!r} where the declaration has {expected!r}"
                raise RuntimeError(message)
            self._record(name, tensor)
            self._alive.append(tensor)

    @abstractmethod
    def _record(self, name: str, tensor: Tensor) -> None:
        """Add the record."""

    def require_all(self, side: str) -> None:
        """Refuse a side that left boundaries out."""
        if len(self.records) != len(self._names):
            message = f"the {side} showed {len(self.records)} of {len(self._names)} boundaries"
            raise RuntimeError(message)


class ControlBoundaries(Boundaries):
    """The control's: copies are kept, for the candidate to be compared with."""

    def __init__(self, names: Sequence[str], watch: Stopwatch) -> None:
        super().__init__(names, watch)
        self.snapshots: list[Tensor] = []

    def _record(self, name: str, tensor: Tensor) -> None:
        snapshot = host_copy(tensor)
        self.records.append(snapshot_record(name, tensor, snapshot))
        self.snapshots.append(snapshot)


class CandidateBoundaries(Boundaries):
    """The candidate's: each is compared as it is shown, and makes the record of the boundary."""

    def __init__(self, control: ControlBoundaries, watch: Stopwatch, challenge: bytes) -> None:
        super().__init__([record["name"] for record in control.records], watch)
        self._control = control
        self._challenge = challenge

    def _record(self, name: str, tensor: Tensor) -> None:
        place, content = len(self.records), on_host(tensor)
        record, challenged = challenged_record(name, tensor, content, self._challenge)
        self.records.append(
            {
                "name": name,
                "control": self._control.records[place],
                "candidate": record,
                "challenge_sha256": challenged,
                "first_difference": first_difference(self._control.snapshots[place], content),
            }
        )


def open_row(bench: Bench, number: int, arm: str, case: Case, repeat: int) -> OpenRow:
    """Draw fresh inputs, and restore the caches."""
    started = time.monotonic_ns()
    seed = bench.order.row_seed(arm, case.name, repeat)
    draw = bench.draw(seed)
    inputs = draw.require_all(bench.worker.inputs(draw, case.sizes))
    with bench.watch:
        bench.restore_caches()
    return OpenRow(number, arm, case, repeat, seed, inputs, draw, started)


def run_row(bench: Bench, opened: OpenRow) -> Record:
    """Run both sides of a row, and give its record."""
    sides, sizes = bench.arms[opened.arm], opened.case.sizes
    control = ControlBoundaries(bench.order.boundaries, bench.watch)
    sides.control(Call(sizes, opened.inputs, bench.control_caches, control.at))
    control.require_all("control")
    candidate = CandidateBoundaries(control, bench.watch, _challenge(bench, opened))
    sides.candidate(Call(sizes, opened.inputs, bench.candidate_caches, candidate.at))
    candidate.require_all("candidate")
    with bench.watch:
        return {
            "schema": "labctl/component-row/1",
            "row": opened.number,
            "arm": opened.arm,
            "case": opened.case.name,
            "repeat": opened.repeat,
            "row_seed": opened.seed,
            "inputs": opened.draw.drawn,
            "boundaries": candidate.records,
            "caches": [_cache_record(bench, opened, index) for index in range(len(bench.cache_names))],
            "buffers": place_records(bench.owned(opened.arm, opened.case)),
            "sample": _sample(bench, opened),
            "inputs_after": [record["sha256"] for record in opened.draw.records_of(opened.inputs)],
            "started_mono_ns": opened.started_mono_ns,
            "ended_mono_ns": time.monotonic_ns(),
        }


def _cache_record(bench: Bench, opened: OpenRow, index: int) -> Record:
    name = bench.cache_names[index]
    control, candidate = bench.control_caches[index], bench.candidate_caches[index]
    expected, actual = on_host(control), on_host(candidate)
    record, challenged = challenged_record(name, candidate, actual, _challenge(bench, opened))
    return {
        "name": name,
        "index": index,
        "control": snapshot_record(name, control, expected),
        "candidate": record,
        "challenge_sha256": challenged,
        "first_difference": first_difference(expected, actual),
        "rest_sha256": _rest_sha256(bench, opened, index, actual),
    }


def _challenge(bench: Bench, opened: OpenRow) -> bytes:
    return f"/{bench.order.nonce}/{opened.number}".encode("ascii")


def _rest_sha256(bench: Bench, opened: OpenRow, index: int, cache: Tensor) -> str:
    """The digest of the cache with the row's slots put back; equal bytes need no second hashing."""
    slots, fill = bench.worker.slots, bench.host_fills[index]
    if slots is None:
        return content_sha256(cache)
    kept = opened.kept_slots(cache.shape[slots.dim], slots.input)
    if same_bits(cache.index_select(slots.dim, kept), fill.index_select(slots.dim, kept)):
        return str(bench.drawn_caches[index]["tensor"]["sha256"])
    numbers = on_host(opened.inputs[slots.input])
    return content_sha256(cache.index_copy(slots.dim, numbers, fill.index_select(slots.dim, numbers)))


def _sample(bench: Bench, opened: OpenRow) -> Record | None:
    slots, count = bench.worker.slots, len(bench.cache_names)
    if slots is None or count == 0:
        return None
    key = hashlib.sha256(f"{bench.order.nonce}/{opened.number}".encode("ascii")).digest()
    index = int.from_bytes(key[:8], "big") % count
    cache, numbers = bench.candidate_caches[index], opened.inputs[slots.input]
    if cache.nbytes // cache.shape[slots.dim] * len(numbers) > SAMPLE_LIMIT_BYTES:
        return None
    written = on_host(cache).index_select(slots.dim, on_host(numbers)).movedim(slots.dim, 0).contiguous()
    return {"cache": index, "base64": base64.b64encode(raw_bytes(written)).decode("ascii")}
