"""What all rows of a worker share: weights, caches, and both sides of each arm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from labctl.component.order import Case, Order
from labctl.component.stopwatch import Stopwatch
from labctl.component.tensors import KnownTensors, Record, on_host, tensor_record, tensor_records
from labctl.component.worker import Draw, OwningSide, Setup, Side, Worker


@dataclass(frozen=True)
class Sides:
    """Both ways of doing the work in one arm."""

    control: Side
    candidate: OwningSide


class Bench:
    """Weights, caches and sides; made once, before the first row."""

    def __init__(self, order: Order, worker: Worker, watch: Stopwatch) -> None:
        self.order = order
        self.worker = worker
        self.watch = watch
        weights, fills = self.draw(order.checkpoint_seed), self.draw(order.checkpoint_seed)
        self.weights = weights.require_all(worker.weights(weights, order.dimensions))
        self.cache_names, self._fills = _in_order(fills.require_all(worker.caches(fills, order.dimensions)))
        self._known = KnownTensors()
        self._weights_draw = weights
        self.drawn_weights: Sequence[Record] = sorted(weights.drawn, key=lambda drawn: str(drawn["tensor"]["name"]))
        self.drawn_caches: Sequence[Record] = fills.drawn
        self.host_fills = [on_host(fill) for fill in self._fills]
        self.control_caches = [fill.clone() for fill in self._fills]
        self.candidate_caches = [fill.clone() for fill in self._fills]
        self.arms = {arm: self._sides(arm) for arm in order.arms}

    def draw(self, seed: int) -> Draw:
        """A fresh source of tensors."""
        return Draw(seed, self.order.device, self.watch)

    def restore_caches(self) -> None:
        """Every cache holds again what it held at first."""
        for caches in (self.control_caches, self.candidate_caches):
            for cache, fill in zip(caches, self._fills, strict=True):
                cache.copy_(fill)

    def sized_cases(self) -> Iterator[Case]:
        """All cases, those of microcases last; a must-raise case is one of the others."""
        yield from self.order.cases
        yield from (entry.case for entry in self.order.microcases if entry.kind == "must_stay_inert")

    def owned(self, arm: str, case: Case) -> Mapping[str, Tensor]:
        """The candidate's own tensors for a case."""
        return self.arms[arm].candidate.owned(case.sizes)

    def state(self, arm: str, inputs: Mapping[str, Tensor]) -> Record:
        """What a microcase must leave as it was."""
        with self.watch:
            return {
                "buffers": [
                    buffer for case in self.sized_cases() for buffer in self._buffers(arm, case, f"{case.name}.")
                ],
                "caches": self.cache_records(),
                "inputs": tensor_records(inputs),
            }

    def cache_records(self) -> list[Record]:
        """The candidate's caches as they are now."""
        return [tensor_record(*pair) for pair in zip(self.cache_names, self.candidate_caches, strict=True)]

    def weight_records(self) -> list[Record]:
        """The weights as they are now, by name."""
        return sorted(self._weights_draw.records_of(self.weights), key=lambda record: str(record["name"]))

    def owned_records(self) -> list[Record]:
        """The candidate's own tensors of all arms and cases."""
        return [
            {"arm": arm, "case": case.name, "buffers": list(self._buffers(arm, case, ""))}
            for arm in self.order.arms
            for case in self.order.cases
        ]

    def _buffers(self, arm: str, case: Case, prefix: str) -> Iterator[Record]:
        for name, buffer in sorted(self.owned(arm, case).items()):
            yield self._known.record(f"{arm}/{case.name}/{name}", f"{prefix}{name}", buffer)

    def _sides(self, arm: str) -> Sides:
        device = torch.device(self.order.device)
        setup = Setup(arm, self.order.dimensions, self.weights, self.order.code / "files", device)
        return Sides(self.worker.control(setup), self.worker.candidate(setup))


def _in_order(caches: Mapping[str, Tensor]) -> tuple[list[str], list[Tensor]]:
    return list(caches), list(caches.values())
