"""One row: fresh inputs, the control, the candidate, and both recorded at every boundary and in every cache."""

import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from labctl.component.worker import Call

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
    drawn: Sequence[Record]
    started_mono_ns: int


class Boundaries:
    """What one side shows at the boundaries; each once, in the order of the declaration."""

    def __init__(self, names: Sequence[str], watch: Stopwatch, challenge: bytes) -> None:
        self._names = names
        self._watch = watch
        self._challenge = challenge
        self.records: list[Record] = []
        self.challenges: list[str] = []
        self.snapshots: list[Tensor] = []
        self._alive: list[Tensor] = []  # or the candidate's first buffers could lie where the control's tensors were

    def at(self, name: str, tensor: Tensor) -> None:
        """Record a boundary as it is now; later writes to the tensor do not change the record."""
        with self._watch:
            expected = self._names[len(self.records)] if len(self.records) < len(self._names) else "no more boundaries"
            if name != expected:
                message = f"the boundary {name!r} where the declaration has {expected!r}"
                raise RuntimeError(message)
            snapshot = host_copy(tensor)
            record, challenged = challenged_record(name, tensor, snapshot, self._challenge)
            self.records.append(record)
            self.challenges.append(challenged)
            self.snapshots.append(snapshot)
            self._alive.append(tensor)

    def require_all(self, side: str) -> None:
        """Refuse a side that left boundaries out."""
        if len(self.records) != len(self._names):
            message = f"the {side} showed {len(self.records)} of {len(self._names)} boundaries"
            raise RuntimeError(message)


def open_row(bench: Bench, number: int, arm: str, case: Case, repeat: int) -> OpenRow:
    """Draw fresh inputs, and restore the caches."""
    started = time.monotonic_ns()
    seed = bench.order.row_seed(arm, case.name, repeat)
    draw = bench.draw(seed)
    inputs = dict(bench.worker.inputs(draw, case.sizes))
    with bench.watch:
        bench.restore_caches()
    return OpenRow(number, arm, case, repeat, seed, inputs, draw.drawn, started)


def run_row(bench: Bench, opened: OpenRow) -> Record:
    """Run both sides of a row, and give its record."""
    sides, sizes = bench.arms[opened.arm], opened.case.sizes
    challenge = _challenge(bench, opened)
    control, candidate = (Boundaries(bench.order.boundaries, bench.watch, challenge) for _ in range(2))
    sides.control(Call(sizes, opened.inputs, bench.control_caches, control.at))
    sides.candidate(Call(sizes, opened.inputs, bench.candidate_caches, candidate.at))
    control.require_all("control")
    candidate.require_all("candidate")
    with bench.watch:
        return {
            "schema": "labctl/component-row/1",
            "row": opened.number,
            "arm": opened.arm,
            "case": opened.case.name,
            "repeat": opened.repeat,
            "row_seed": opened.seed,
            "inputs": list(opened.drawn),
            "boundaries": _boundary_records(bench.order.boundaries, control, candidate),
            "caches": [_cache_record(bench, opened, index) for index in range(len(bench.cache_names))],
            "buffers": place_records(bench.owned(opened.arm, opened.case)),
            "sample": _sample(bench, opened),
            "inputs_after": [content_sha256(on_host(opened.inputs[name])) for name in _names(opened.drawn)],
            "started_mono_ns": opened.started_mono_ns,
            "ended_mono_ns": time.monotonic_ns(),
        }


def _names(drawn: Sequence[Record]) -> list[str]:
    return [entry["tensor"]["name"] for entry in drawn]


def _boundary_records(names: Sequence[str], control: Boundaries, candidate: Boundaries) -> list[Record]:
    return [
        {
            "name": name,
            "control": control.records[place],
            "candidate": candidate.records[place],
            "challenge_sha256": candidate.challenges[place],
            "first_difference": first_difference(control.snapshots[place], candidate.snapshots[place]),
        }
        for place, name in enumerate(names)
    ]


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
    numbers = on_host(opened.inputs[slots.input])
    rest = cache.index_copy(slots.dim, numbers, fill.index_select(slots.dim, numbers))
    return str(bench.drawn_caches[index]["tensor"]["sha256"]) if same_bits(rest, fill) else content_sha256(rest)


def _sample(bench: Bench, opened: OpenRow) -> Record | None:
    slots, count = bench.worker.slots, len(bench.cache_names)
    if slots is None or count == 0:
        return None
    key = hashlib.sha256(f"{bench.order.nonce}/{opened.number}".encode("ascii")).digest()
    index = int.from_bytes(key[:8], "big") % count
    numbers = on_host(opened.inputs[slots.input])
    written = on_host(bench.candidate_caches[index]).index_select(slots.dim, numbers).movedim(slots.dim, 0).contiguous()
    raw = raw_bytes(written)
    return {"cache": index, "base64": base64.b64encode(raw).decode("ascii")} if len(raw) <= SAMPLE_LIMIT_BYTES else None
