"""The decoder: integer arithmetic in float64 arrays, so that every machine and every batching gives the same tokens.

Why it is exact. All weights are integers and every activation is an integer of at most `LIMIT` in size, so each product
and each partial sum of a matrix product, in whatever order a BLAS adds them and with or without fused operations, is an
integer of at most `largest_partial_sum`, which is computed from the weights themselves. While that bound is below 2**53
no sum is ever rounded. Two rows may share one float64 (`_LANE` apart), as long as each row's sums stay below half of
`_LANE`. Everything between the products is done to single elements (limits, rounding, a maximum, one division), which
IEEE 754 fixes to the last bit.

Sharing is also why drafts pay here as they do in an engine: what a batch saves is reading the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.servers.reference.weights import (
    HEAD_WIDTH,
    HEADS,
    LAYERS,
    POSITIONS,
    UNIT,
    WIDTH,
    Array,
    Layer,
    Weights,
)

LIMIT = 127
_LANE = float(1 << 26)
_LANED_ROWS = 8
_DOWN_DIVISOR = 128
_UNSEEN = -float(1 << 40)
_CHUNK = 128


@dataclass(slots=True)
class Cache:
    """Keys and values of one sequence, and how many of its tokens are in."""

    keys: Array
    values: Array
    length: int = 0

    @property
    def capacity(self) -> int:
        """How many tokens fit."""
        return int(self.keys.shape[2])


def new_cache(capacity: int) -> Cache:
    """An empty cache for `capacity` tokens."""
    shape = (LAYERS, HEADS, capacity, HEAD_WIDTH)
    return Cache(np.zeros(shape), np.zeros(shape))


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder-only network with greedy output."""

    weights: Weights

    def advance(self, tokens: Sequence[int], cache: Cache) -> list[int]:
        """Append `tokens` to the sequence in `cache`; give, after each of them, the token that follows."""
        following: list[int] = []
        for start in range(0, len(tokens), _CHUNK):
            following += self._advance_chunk(tokens[start : start + _CHUNK], cache)
        return following

    def _advance_chunk(self, tokens: Sequence[int], cache: Cache) -> list[int]:
        first, last = cache.length, cache.length + len(tokens)
        stream = self.weights.tokens[list(tokens)] + self.weights.places[first:last]
        hidden_from = _causal_mask(first, last)
        for index, layer in enumerate(self.weights.layers):
            seen = (cache.keys[index, :, :last], cache.values[index, :, :last])
            stream = _limited(stream + _attend(stream, layer, seen, hidden_from))
            stream = _limited(stream + _network(stream, layer))
        cache.length = last
        scores = _product(stream, self.weights.unembedding) + self.weights.bias
        return [int(token) for token in scores.argmax(axis=1)]


def largest_partial_sum(weights: Weights, positions: int = POSITIONS) -> int:
    """The largest size that any partial sum can take, shared rows and `positions` cached tokens included."""
    rows = largest_row_sum(weights)
    shared = rows + rows * int(_LANE)
    scores = HEAD_WIDTH * LIMIT * LIMIT
    averages = positions * int(max(layer.sharpness.max() for layer in weights.layers)) * LIMIT
    return max(shared, scores, averages)


def largest_row_sum(weights: Weights) -> int:
    """The largest size that a partial sum of one row can take; must be below half of what separates two rows."""
    matrices = [weights.unembedding]
    for layer in weights.layers:
        matrices += [layer.query_key_value, layer.output, layer.up, layer.down]
    return max(int(np.abs(matrix).sum(axis=0).max()) * LIMIT for matrix in matrices)


def _attend(stream: Array, layer: Layer, seen: tuple[Array, Array], hidden_from: Array | None) -> Array:
    rows = len(stream)
    mixed = _limited(np.rint(_product(stream, layer.query_key_value) / UNIT))
    queries, new_keys, new_values = mixed.reshape(rows, 3, HEADS, HEAD_WIDTH).transpose(1, 2, 0, 3)
    keys, values = seen
    keys[:, -rows:] = new_keys
    values[:, -rows:] = new_values
    scores = queries @ keys.transpose(0, 2, 1)
    if hidden_from is not None:
        scores += hidden_from
    shares = np.maximum(scores - (scores.max(axis=2, keepdims=True) - layer.sharpness), 0.0)
    averages = np.rint((shares @ values) / shares.sum(axis=2, keepdims=True))
    return np.rint(_product(averages.transpose(1, 0, 2).reshape(rows, WIDTH), layer.output) / UNIT)


def _network(stream: Array, layer: Layer) -> Array:
    hidden = np.minimum(np.rint(np.maximum(_product(stream, layer.up), 0.0) / UNIT), LIMIT)
    return np.rint(_product(hidden, layer.down) / _DOWN_DIVISOR)


def _product(rows: Array, matrix: Array) -> Array:
    # A BLAS copies the whole matrix before it multiplies a few rows; single rows of two lanes each read it in place.
    count = len(rows)
    if count == 1 or count > _LANED_ROWS:
        return rows @ matrix
    lanes = rows[::2].copy()
    lanes[: count // 2] += rows[1::2] * _LANE
    sums = np.empty((len(lanes), matrix.shape[1]))
    for lane, total in zip(lanes, sums, strict=True):
        np.dot(lane, matrix, out=total)
    upper = np.rint(sums * (1.0 / _LANE))
    results = np.empty((count, matrix.shape[1]))
    results[1::2] = upper[: count // 2]
    upper *= _LANE
    np.subtract(sums, upper, out=results[::2])
    return results


def _limited(values: Array) -> Array:
    return np.clip(values, -LIMIT, LIMIT)


def _causal_mask(first: int, last: int) -> Array | None:
    rows = last - first
    if rows == 1:
        return None
    return np.triu(np.full((rows, last), _UNSEEN), k=first + 1)
