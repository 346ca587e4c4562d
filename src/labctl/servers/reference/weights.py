"""The weights of the decoder: integers from a seed, with three hand-built attention heads among the random ones.

The residual stream of 256 channels has named parts (`Part`). The built heads fill them: layer 0 fetches the previous
token, layer 1 the one before it, and layer 2 looks for an earlier place with the same two tokens and copies what
followed there. Everything else is random, so that what is written is neither constant nor a plain copy.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from labctl.servers.reference.tokens import BEGIN_OF_TEXT, END_OF_TEXT, FIRST_PIECE, VOCABULARY_SIZE

Array = npt.NDArray[np.float64]

WIDTH: Final = 256
LAYERS: Final = 4
HEADS: Final = 4
HEAD_WIDTH: Final = 64
HIDDEN: Final = 768
POSITIONS: Final = 4096
AMPLITUDE: Final = 16
UNIT: Final = 32
"""The weight that leaves a channel as it is: `decoder` divides every product by it."""

_SEED: Final = 204
_RARE: Final = -(1 << 30)
_BYTE_BIAS: Final = -9000
_END_BIAS: Final = -4000
_TOKEN_HIDDEN: Final = HIDDEN // 2
"""So many hidden channels see the current token alone, which gives every token its usual followers."""
# These four strengths and the seed were tried out together: with them a text neither dies in a short cycle nor leaves
# prompt lookup without work. They are choices for a rehearsal, not findings.
_FOLLOWER_STRENGTH: Final = 6
_SURPRISE_STRENGTH: Final = 9
_COPY_STRENGTH: Final = 29
_TOPIC_STRENGTH: Final = 3


class Part:
    """The channels of the residual stream by what they hold."""

    TOKEN = slice(0, 64)
    PREVIOUS = slice(64, 112)
    SECOND_PREVIOUS = slice(112, 136)
    NEXT = slice(136, 200)
    PLACE = slice(200, 227)
    PLACE_BEFORE = slice(227, 254)
    ONE = 254
    IS_BEGIN = 255


@dataclass(frozen=True, slots=True)
class Layer:
    """One block: attention, then a network of one hidden layer."""

    query_key_value: Array
    output: Array
    up: Array
    down: Array
    sharpness: Array
    """How far below the best score a place still counts, a number for each head."""


@dataclass(frozen=True, slots=True)
class Weights:
    """All numbers of the decoder; every one is an integer."""

    tokens: Array
    places: Array
    layers: tuple[Layer, ...]
    unembedding: Array
    bias: Array


class _Bytes:
    """An endless stream of random bytes: PCG64's raw output, which never changes, unlike numpy's distributions."""

    def __init__(self, seed: int) -> None:
        self._source = np.random.PCG64(seed)

    def integers(self, shape: tuple[int, ...], largest: int) -> Array:
        """Integers from `-largest` to `largest`."""
        count = int(np.prod(shape))
        raw = self._source.random_raw(-(-count // 8)).astype("<u8").view(np.uint8)[:count]
        return (raw % np.uint8(2 * largest + 1)).astype(np.float64).reshape(shape) - largest

    def signs(self, shape: tuple[int, ...]) -> Array:
        """Plus or minus `AMPLITUDE`."""
        return np.where(self.integers(shape, 127) > 0, float(AMPLITUDE), -float(AMPLITUDE))


def make_weights(seed: int = _SEED) -> Weights:
    """Make the weights; the same on every machine."""
    source = _Bytes(seed)
    codes = source.signs((VOCABULARY_SIZE, 64))
    codes[BEGIN_OF_TEXT] = 0
    return Weights(
        tokens=_token_table(codes),
        places=_place_table(source),
        layers=tuple(_layer(source, index) for index in range(LAYERS)),
        unembedding=_unembedding(source, codes),
        bias=_bias(),
    )


def _token_table(codes: Array) -> Array:
    table = np.zeros((VOCABULARY_SIZE, WIDTH))
    table[:, Part.TOKEN] = codes
    table[:, Part.ONE] = AMPLITUDE
    table[BEGIN_OF_TEXT, Part.IS_BEGIN] = AMPLITUDE
    return table


def _place_table(source: _Bytes) -> Array:
    codes = source.signs((POSITIONS + 1, 27))
    table = np.zeros((POSITIONS, WIDTH))
    table[:, Part.PLACE] = codes[1:]
    table[:, Part.PLACE_BEFORE] = codes[:-1]
    return table


def _layer(source: _Bytes, index: int) -> Layer:
    up = source.integers((WIDTH, HIDDEN), 3)
    up[Part.TOKEN.stop :, :_TOKEN_HIDDEN] = 0
    up[Part.PLACE.start : Part.PLACE_BEFORE.stop] *= 2
    down = source.integers((HIDDEN, WIDTH), 1)
    # Mirrored pairs: what a rectifier leaves on average cancels, so that no token is favoured everywhere.
    down[1::2] = -down[::2]
    down[:_TOKEN_HIDDEN, Part.NEXT] *= _FOLLOWER_STRENGTH
    down[_TOKEN_HIDDEN:, Part.NEXT] *= _SURPRISE_STRENGTH
    query_key_value = source.integers((WIDTH, 3 * WIDTH), 2)
    output = source.integers((WIDTH, WIDTH), 1)
    output[:, Part.NEXT] *= _TOPIC_STRENGTH
    layer = Layer(
        query_key_value=query_key_value,
        output=output,
        up=up,
        down=down,
        sharpness=np.full((HEADS, 1, 1), 4096.0),
    )
    if index < len(_BUILT_HEADS):
        _BUILT_HEADS[index](layer)
    return layer


def _fetch_previous(layer: Layer) -> None:
    _clear_head(layer, 1700)
    _wire(layer.query_key_value, Part.PLACE_BEFORE, 0)
    _wire(layer.query_key_value, Part.PLACE, WIDTH)
    _wire(layer.query_key_value, slice(0, 48), 2 * WIDTH)
    layer.output[:HEAD_WIDTH, Part.PREVIOUS][:48] = np.eye(48) * UNIT


def _fetch_second_previous(layer: Layer) -> None:
    _clear_head(layer, 1700)
    _wire(layer.query_key_value, Part.PLACE_BEFORE, 0)
    _wire(layer.query_key_value, Part.PLACE, WIDTH)
    _wire(layer.query_key_value, slice(Part.PREVIOUS.start, Part.PREVIOUS.start + 24), 2 * WIDTH)
    layer.output[:HEAD_WIDTH, Part.SECOND_PREVIOUS][:24] = np.eye(24) * UNIT


def _copy_what_followed(layer: Layer) -> None:
    _clear_head(layer, 2048)
    columns = layer.query_key_value
    _wire(columns, slice(0, 36), 0)
    _wire(columns, slice(Part.PREVIOUS.start, Part.PREVIOUS.start + 24), 36)
    _wire(columns, slice(Part.PREVIOUS.start, Part.PREVIOUS.start + 36), WIDTH)
    _wire(columns, Part.SECOND_PREVIOUS, WIDTH + 36)
    # Without a match the head looks at the begin mark, whose value is nothing.
    columns[Part.ONE, 60] = 7 * UNIT
    columns[Part.IS_BEGIN, WIDTH + 60] = 4 * UNIT
    _wire(columns, Part.TOKEN, 2 * WIDTH)
    layer.output[:HEAD_WIDTH, Part.NEXT] = np.eye(64) * _COPY_STRENGTH


_BUILT_HEADS = (_fetch_previous, _fetch_second_previous, _copy_what_followed)


def _clear_head(layer: Layer, sharpness: int) -> None:
    for start in (0, WIDTH, 2 * WIDTH):
        layer.query_key_value[:, start : start + HEAD_WIDTH] = 0
    layer.output[:HEAD_WIDTH] = 0
    layer.sharpness[0] = sharpness


def _wire(matrix: Array, channels: slice, column: int) -> None:
    for offset, channel in enumerate(range(channels.start, channels.stop)):
        matrix[channel, column + offset] = UNIT


def _unembedding(source: _Bytes, codes: Array) -> Array:
    matrix = source.integers((WIDTH, VOCABULARY_SIZE), 1)
    matrix[Part.NEXT] = codes.T // 2
    return matrix


def _bias() -> Array:
    bias = np.zeros(VOCABULARY_SIZE)
    bias[:FIRST_PIECE] = _BYTE_BIAS
    bias[END_OF_TEXT] = _END_BIAS
    bias[BEGIN_OF_TEXT] = _RARE
    return bias
