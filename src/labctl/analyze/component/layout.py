"""Where a declared tensor or view lies: shape, stride and storage offset, derived and never taken from a record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

from labctl.prereg.extents import extent_of

ELEMENT_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in its storage; strides and offset count elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    dtype: str
    storage_elements: int

    @property
    def element_bytes(self) -> int:
        """The size of one element."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def elements(self) -> int:
        """How many elements the tensor shows."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """The size of what the tensor shows."""
        return self.elements * self.element_bytes


def owner_layout(shape: Iterable[int | str], dtype: str, dimensions: Mapping[str, int]) -> Layout:
    """The layout of a contiguous tensor that owns its storage."""
    sizes = tuple(extent_of(term, dimensions) or 0 for term in shape)
    strides = tuple(accumulate(reversed(sizes[1:]), lambda left, right: left * right, initial=1))[::-1]
    return Layout(sizes, strides if sizes else (), 0, dtype, prod(sizes))


def select_view(owner: Layout, dim: int, index: int) -> Layout:
    """The layout of the view that fixes one dimension: its offset is `index` steps of that dimension."""
    return replace(
        owner,
        shape=owner.shape[:dim] + owner.shape[dim + 1 :],
        stride=owner.stride[:dim] + owner.stride[dim + 1 :],
        storage_offset=owner.storage_offset + index * owner.stride[dim],
    )
