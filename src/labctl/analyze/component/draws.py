"""Draws tensors again from what their records name, so that nobody's word is taken for what a row was given."""

import struct
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256, shake_256
from math import prod

from labctl.analyze.component.layout import ELEMENT_BYTES
from labctl.records.component_row import ConsecutiveDraw, DistinctDraw, Draw, DrawnTensor, UniformDraw

INTEGERS = {"int64": "q", "uint64": "Q", "int32": "i", "uint32": "I", "int16": "h", "int8": "b", "uint8": "B"}
FLOATS = {"float64": "d", "float32": "f", "float16": "e"}
KEY_BYTES = 8
LIMIT_BYTES = 1 << 31


def draw_bytes(drawn: DrawnTensor) -> bytes | None:
    """The raw bytes of a drawn tensor, row-major and little-endian; None where its form or size is not one of ours."""
    tensor = drawn.tensor
    count = prod(tensor.shape)
    size_bytes = ELEMENT_BYTES.get(tensor.dtype)
    if size_bytes is None or count * size_bytes > LIMIT_BYTES:
        return None
    return _drawn(drawn.draw, drawn.stream, count, tensor.dtype)


def drawn_sha256(drawn: DrawnTensor) -> str | None:
    """The digest of a drawn tensor's raw bytes, computed from its draw alone."""
    return _digest(drawn.draw, drawn.stream, drawn.tensor.shape, drawn.tensor.dtype)


@lru_cache(maxsize=4096)
def _digest(draw: Draw, stream: str, shape: tuple[int, ...], dtype: str) -> str | None:
    if dtype not in ELEMENT_BYTES or prod(shape) * ELEMENT_BYTES[dtype] > LIMIT_BYTES:
        return None
    data = _drawn(draw, stream, prod(shape), dtype)
    return None if data is None else sha256(data).hexdigest()


def _drawn(draw: Draw, stream: str, count: int, dtype: str) -> bytes | None:
    match draw:
        case UniformDraw():
            return _uniform(draw, stream, count, dtype)
        case DistinctDraw():
            return _distinct(draw, stream, count, dtype)
        case ConsecutiveDraw():
            first = int.from_bytes(_stream(stream, KEY_BYTES), "big") % draw.below
            return _packed(dtype, range(first, first + count))


def _uniform(draw: UniformDraw, stream: str, count: int, dtype: str) -> bytes | None:
    encode = _encoder(dtype)
    if encode is None:
        return None
    signed = (byte - 256 if byte > 127 else byte for byte in range(256))  # noqa: PLR2004 (two's complement)
    elements = [encode((2 * byte + 1) * 2.0**draw.exponent + draw.offset) for byte in signed]
    raw = _stream(stream, count)
    size_bytes = ELEMENT_BYTES[dtype]
    out = bytearray(count * size_bytes)
    for place in range(size_bytes):
        out[place::size_bytes] = raw.translate(bytes(element[place] for element in elements))
    return bytes(out)


def _distinct(draw: DistinctDraw, stream: str, count: int, dtype: str) -> bytes | None:
    if count > draw.below or draw.below * KEY_BYTES > LIMIT_BYTES:
        return None
    raw = _stream(stream, draw.below * KEY_BYTES)
    order = sorted(range(draw.below), key=lambda number: raw[number * KEY_BYTES : (number + 1) * KEY_BYTES])
    return _packed(dtype, order[:count])


def _packed(dtype: str, numbers: range | list[int]) -> bytes | None:
    letter = INTEGERS.get(dtype)
    try:
        return None if letter is None else struct.pack(f"<{len(numbers)}{letter}", *numbers)
    except struct.error:
        return None  # a number that the type does not hold


def _encoder(dtype: str) -> Callable[[float], bytes] | None:
    if dtype == "bfloat16":
        return _bfloat16
    letter = FLOATS.get(dtype)
    return None if letter is None else lambda value: struct.pack(f"<{letter}", value)


def _bfloat16(value: float) -> bytes:
    """The upper half of a float32, rounded to nearest, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def _stream(stream: str, count: int) -> bytes:
    return shake_256(stream.encode("utf-8", "surrogatepass")).digest(count)
