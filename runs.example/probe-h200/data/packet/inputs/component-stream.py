"""Bytes that follow from a seed and a name alone: the same in every interpreter, torch version and device."""

import hashlib
import struct
from functools import lru_cache

WORD_BYTES = 8


def stream_bytes(stream: str, count: int) -> bytes:
    """The first bytes of SHAKE-256 of a stream's name, `SEED/NAME`."""
    return hashlib.shake_256(stream.encode("ascii")).digest(count)


def uniform_bytes(stream: str, count: int, dtype: str, exponent: int, offset: int) -> bytes:
    """Little-endian elements `offset + (2b + 1) * 2**exponent`, b the signed bytes of the stream."""
    table = element_table(dtype, exponent, offset)
    drawn = stream_bytes(stream, count)
    width = len(table) // 256
    elements = bytearray(count * width)
    for place in range(width):
        elements[place::width] = drawn.translate(table[place::width])
    return bytes(elements)


def distinct_integers(stream: str, count: int, below: int) -> list[int]:
    """The first of 0 … below-1, in the order of their keys."""
    drawn = stream_bytes(stream, WORD_BYTES * below)
    keys = [drawn[place : place + WORD_BYTES] for place in range(0, len(drawn), WORD_BYTES)]
    return sorted(range(below), key=lambda number: (keys[number], number))[:count]


def consecutive_integers(stream: str, count: int, below: int) -> list[int]:
    """A run of integers that starts below the bound."""
    start = int.from_bytes(stream_bytes(stream, WORD_BYTES), "big") % below
    return list(range(start, start + count))


@lru_cache(maxsize=64)
def element_table(dtype: str, exponent: int, offset: int) -> bytes:
    """The little-endian elements of the 256 bytes, in order."""
    signed = [*range(128), *range(-128, 0)]
    values = [offset + (2 * byte + 1) * 2.0**exponent for byte in signed]
    match dtype:
        case "float64":
            return struct.pack("<256d", *values)
        case "float32":
            return struct.pack("<256f", *values)
        case "float16":
            return struct.pack("<256e", *values)
        case "bfloat16":
            return struct.pack("<256H", *map(_bfloat16_bits, values))
        case _:
            message = f"no uniform draw of type {dtype}"
            raise ValueError(message)


def _bfloat16_bits(value: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # to nearest, ties to even
