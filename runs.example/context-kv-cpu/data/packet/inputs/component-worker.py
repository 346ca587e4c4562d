"""What a worker file declares: how to draw weights and inputs, and two sides that do the same work differently.

```python
worker = Worker(weights=draw_weights, inputs=draw_inputs, control=Allocating, candidate=Persistent)
```
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from labctl.component import stream
from labctl.component.stopwatch import Stopwatch
from labctl.component.tensors import KnownTensors, Record, dtype_name, from_bytes, tensor_record

Sizes = Mapping[str, int]
"""Dimensions by name: those of the campaign, and where a case runs those of the case."""


class Draw:
    """Draws tensors from one seed; each follows from the seed and its name alone, and is recorded with its digest."""

    def __init__(self, seed: int, device: str, watch: Stopwatch) -> None:
        self._seed = seed
        self._device = device
        self._watch = watch
        self.drawn: list[Record] = []
        self._known = KnownTensors()

    def uniform(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, exponent: int = -8, offset: int = 0
    ) -> Tensor:
        """Elements `offset + (2b + 1) * 2**exponent`, b from -128 to 127: with -8 between -1 and 1, and never zero."""
        count = 1
        for extent in shape:
            count *= extent
        data = stream.uniform_bytes(self._stream(name), count, dtype_name(dtype), exponent, offset)
        return self._keep(
            name, from_bytes(data, dtype, shape), {"kind": "uniform", "exponent": exponent, "offset": offset}
        )

    def distinct(self, name: str, count: int, below: int) -> Tensor:
        """Distinct integers below a bound, such as slots of a cache."""
        numbers = stream.distinct_integers(self._stream(name), count, below)
        return self._keep(name, self._integers(numbers), {"kind": "distinct", "below": below})

    def consecutive(self, name: str, count: int, below: int) -> Tensor:
        """Integers in a run that starts below a bound, such as positions."""
        numbers = stream.consecutive_integers(self._stream(name), count, below)
        return self._keep(name, self._integers(numbers), {"kind": "consecutive", "below": below})

    def records_of(self, tensors: Mapping[str, Tensor]) -> list[Record]:
        """Tensors that were drawn here as they are now, in the order in which they were drawn."""
        names = [entry["tensor"]["name"] for entry in self.drawn]
        return [self._known.record(name, name, tensors[name]) for name in names]

    def require_all(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Refuse tensors that were not drawn here under their names, or drawn and left out."""
        drawn = [entry["tensor"]["name"] for entry in self.drawn]
        if sorted(drawn) != sorted(tensors):
            message = f"drawn were {sorted(drawn)}, and what came back is {sorted(tensors)}"
            raise RuntimeError(message)
        return tensors

    def _stream(self, name: str) -> str:
        return f"{self._seed}/{name}"

    def _integers(self, numbers: list[int]) -> Tensor:
        return from_bytes(struct.pack(f"<{len(numbers)}q", *numbers), torch.int64, (len(numbers),))

    def _keep(self, name: str, original: Tensor, draw: Record) -> Tensor:
        tensor = original.to(self._device, copy=True)
        with self._watch:
            record = tensor_record(name, tensor)
            self._known.learn(name, original, record["sha256"])
            self.drawn.append({"draw": draw, "stream": self._stream(name), "tensor": record})
        return tensor


@dataclass(frozen=True)
class Setup:
    """What a side is built from, once an arm."""

    arm: str
    """The arm's name."""
    sizes: Sizes
    """Dimensions of the campaign."""
    weights: Mapping[str, Tensor]
    """Weights by name, on the card; the same tensors for both sides and all arms."""
    files: Path
    """The folder with the campaign's pinned files."""
    device: torch.device
    """The card."""


@dataclass(frozen=True)
class Call:
    """One call of a side."""

    sizes: Sizes
    """All dimensions of the case."""
    inputs: Mapping[str, Tensor]
    """Fresh inputs by name, on the card; the same tensors for both sides."""
    caches: Sequence[Tensor]
    """What the side writes into, by number; each side has its own."""
    at: Callable[[str, Tensor], None]
    """`call.at(name, tensor)`: the boundary has this name, and its content is that of now."""


class Side(Protocol):
    """One way of doing the work."""

    def __call__(self, call: Call) -> None:
        """Do it once."""


class OwningSide(Side, Protocol):
    """The candidate: a side that may keep tensors of its own from call to call."""

    def owned(self, sizes: Sizes) -> Mapping[str, Tensor]:
        """Its own tensors for a case, named as the declared buffers; none before first use, or where it has none."""


@dataclass(frozen=True)
class Slots:
    """How caches are laid out: which input holds the slots, and along which dimension of a cache they count."""

    input: str
    dim: int


def _nothing(_draw: Draw, _sizes: Sizes) -> dict[str, Tensor]:
    return {}


@dataclass(frozen=True)
class Worker:
    """A component, whole."""

    inputs: Callable[[Draw, Sizes], Mapping[str, Tensor]]
    """Draws the inputs of one row."""
    control: Callable[[Setup], Side]
    """Builds the control for an arm."""
    candidate: Callable[[Setup], OwningSide]
    """Builds the candidate for an arm."""
    weights: Callable[[Draw, Sizes], Mapping[str, Tensor]] = field(default=_nothing)
    """Draws the weights, once."""
    caches: Callable[[Draw, Sizes], Mapping[str, Tensor]] = field(default=_nothing)
    """Draws what caches hold before each row, named `cache0`, `cache1`, ... in order."""
    slots: Slots | None = None
    """How caches are laid out, where there are any."""
