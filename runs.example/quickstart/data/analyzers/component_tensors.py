"""Tensors of a component run, without torch: where each must lie, what each drawn one must hold, caches rebuilt."""

import base64
import hashlib
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod

from .sealed_files import Doc, sha256

SIZES = {"bool": 1, "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "int16": 2, "float16": 2}
SIZES |= {"bfloat16": 2, "int32": 4, "float32": 4, "int64": 8, "float64": 8, "uint16": 2, "uint32": 4, "uint64": 8}
PACKING = {"int64": "q", "uint64": "Q", "int32": "i", "uint32": "I", "int16": "h", "int8": "b", "uint8": "B"}
LARGEST_BYTES = 1 << 31
SAMPLE_BYTES = 2048
HALF = 0x8000


def number_of(nonce: str, *more: object) -> int:
    """The first 8 bytes of the digest of a nonce and what follows it, as a number."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, (nonce, *more))).encode()).digest()[:8], "big")


def extent(term: int | str, sizes: Doc) -> int:
    """An extent: a product of integers and named dimensions."""
    factors = [int(part) if part.isdigit() else sizes.get(part, 0) for part in str(term).split("*")]
    return prod(factors)


def sizes_at(prereg: Doc, case: str) -> Doc:
    """All dimensions at a case, or at the size of an inert microcase."""
    named = {one["name"]: one["values"] for one in (*prereg["microcases"], *prereg["cases"]) if "values" in one}
    return {**prereg["dimensions"], **named.get(case, {})}


def owner(buffer: Doc, sizes: Doc) -> Doc:
    """How a buffer lies: contiguous, from the first element of its storage."""
    shape = [extent(term, sizes) for term in buffer["shape"]]
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return {"shape": shape, "stride": strides, "storage_offset": 0, "dtype": buffer["dtype"]}


def declared_view(prereg: Doc, boundary: Doc, case: str) -> Doc:
    """How a boundary lies: as its buffer, or one index further along one of its dimensions."""
    buffer = next(one for one in prereg["buffers"] if one["name"] == boundary["of"])
    whole = owner(buffer, sizes_at(prereg, case))
    if (picked := boundary["select"]) is None:
        return whole
    axis = picked["dim"]
    kept = {key: [*whole[key][:axis], *whole[key][axis + 1 :]] for key in ("shape", "stride")}
    return {**whole, **kept, "storage_offset": picked["index"] * whole["stride"][axis]}


def lies(tensor: Doc) -> Doc:
    """How a recorded tensor lies."""
    return {key: tensor[key] for key in ("shape", "stride", "storage_offset", "dtype")}


def cache_count(prereg: Doc) -> int:
    """How many caches each row writes."""
    return extent(prereg["caches"]["count"], sizes_at(prereg, prereg["cases"][0]["name"])) if prereg["caches"] else 0


def layer_axis(prereg: Doc, name: str) -> int | None:
    """The axis of a boundary that counts layers, as the caches are counted."""
    boundary = next((one for one in prereg["boundaries"] if one["name"] == name), None)
    if boundary is None or not prereg["caches"]:
        return None
    shape = list(next(one["shape"] for one in prereg["buffers"] if one["name"] == boundary["of"]))
    if boundary["select"] is not None:
        shape.pop(boundary["select"]["dim"])
    return shape.index(prereg["caches"]["count"]) if prereg["caches"]["count"] in shape else None


def drawn_faults(drawn: Doc, seed: int) -> list[str]:
    """In what a drawn tensor is not the one that the seed gives under its name."""
    tensor, faults = drawn["tensor"], []
    if drawn["stream"] != f"{seed}/{tensor['name']}":
        faults.append(f"stream {drawn['stream']}")
    if drawn_sha256(drawn) != tensor["sha256"]:
        faults.append(f"digest {tensor['sha256']}")
    return faults


def drawn_sha256(drawn: Doc) -> str | None:
    """The digest of what a draw gives; None where it gives nothing."""
    draw, tensor = drawn["draw"], drawn["tensor"]
    return _digest(tuple(sorted(draw.items())), drawn["stream"], prod(tensor["shape"]), tensor["dtype"])


@lru_cache(maxsize=4096)
def _digest(draw: tuple[tuple[str, object], ...], stream: str, count: int, dtype: str) -> str | None:
    data = drawn_bytes(dict(draw), stream, count, dtype)
    return None if data is None else sha256(data)


def drawn_bytes(draw: Doc, stream: str, count: int, dtype: str) -> bytes | None:
    """The little-endian elements that a draw gives; None where it gives none."""
    wanted = {"uniform": count, "distinct": 8 * draw.get("below", 0), "consecutive": 8}[draw["kind"]]
    if dtype not in SIZES or max(wanted, count * SIZES[dtype]) > LARGEST_BYTES:
        return None
    raw = hashlib.shake_256(stream.encode("utf-8", "surrogatepass")).digest(wanted)
    if draw["kind"] == "uniform":
        table = _elements(dtype, draw["exponent"], draw["offset"])
        return None if table is None else b"".join(table[byte] for byte in raw)
    if draw["kind"] == "distinct":
        keys = sorted((raw[at : at + 8], at // 8) for at in range(0, wanted, 8))
        numbers = [number for _, number in keys[:count]] if count <= draw["below"] else None
    else:
        first = int.from_bytes(raw, "big") % draw["below"]
        numbers = list(range(first, first + count))
    return None if numbers is None or dtype not in PACKING else _packed(dtype, numbers)


def _packed(dtype: str, numbers: list[int]) -> bytes | None:
    try:
        return struct.pack(f"<{len(numbers)}{PACKING[dtype]}", *numbers)
    except struct.error:
        return None


@lru_cache(maxsize=64)
def _elements(dtype: str, exponent: int, offset: int) -> list[bytes] | None:
    values = [offset + (2 * byte + 1) * 2.0**exponent for byte in (*range(128), *range(-128, 0))]
    if dtype == "bfloat16":
        return [_upper_half(struct.unpack("<I", struct.pack("<f", value))[0]) for value in values]
    letter = {"float64": "d", "float32": "f", "float16": "e"}.get(dtype)
    return [struct.pack(f"<{letter}", value) for value in values] if letter else None


def _upper_half(bits: int) -> bytes:
    kept, rest = bits >> 16, bits & 0xFFFF
    return struct.pack("<H", kept + (rest > HALF or (rest == HALF and kept % 2 == 1)))


def sample_faults(record: Doc, row: Doc, nonce: str) -> Iterator[tuple[str, object, object]]:
    """Checks of a row's raw sample: what, expected, observed."""
    first, layout, sample = record["caches"], record["cache_layout"], row["sample"]
    if not first or layout is None:
        yield "a sample without caches", None, sample
        return
    chosen = number_of(nonce, row["row"]) % len(first)
    shape, dtype = first[chosen]["tensor"]["shape"], first[chosen]["tensor"]["dtype"]
    axis, slots = layout["slot_dim"], _slots(row, layout["slots_input"])
    piece = prod(shape[axis + 1 :]) * SIZES.get(dtype, 0)
    rounds = prod(shape[:axis])
    size = rounds * piece * len(slots)
    yield "a sample", size <= SAMPLE_BYTES, sample is not None
    if sample is None:
        return
    raw = base64.b64decode(sample["base64"])
    yield "cache and bytes of the sample", (chosen, size), (sample["cache"], len(raw))
    before = drawn_bytes(first[chosen]["draw"], first[chosen]["stream"], prod(shape), dtype)
    pair = next((one for one in row["caches"] if one["index"] == chosen), None)
    if before is not None and pair is not None and len(raw) == size:
        whole = bytearray(before)
        for at, (slot, turn) in enumerate((slot, turn) for slot in slots for turn in range(rounds)):
            start = (turn * shape[axis] + slot) * piece
            whole[start : start + piece] = raw[at * piece : (at + 1) * piece]
        challenged = bytes(whole) + f"/{nonce}/{row['row']}".encode()
        digests = sha256(bytes(whole)), sha256(challenged)
        yield "digests of the rebuilt cache", digests, (pair["candidate"]["sha256"], pair["challenge_sha256"])


def _slots(row: Doc, name: str) -> list[int]:
    for drawn in (one for one in row["inputs"] if one["tensor"]["name"] == name):
        tensor, count = drawn["tensor"], prod(drawn["tensor"]["shape"])
        data = drawn_bytes(drawn["draw"], drawn["stream"], count, tensor["dtype"])
        if data is not None and tensor["dtype"] in PACKING:
            return list(struct.unpack(f"<{count}{PACKING[tensor['dtype']]}", data))
    return []


def overlapping(places: Iterable[tuple[str, Doc]]) -> list[str]:
    """Names of storages that begin before the one below them ends."""
    ordered = sorted((one["storage_ptr"], one["storage_bytes"], name) for name, one in places)
    found, end, last = [], 0, ""
    for start, size, name in ordered:
        if start < end:
            found.append(f"{last} and {name}")
        if start + size >= end:
            end, last = start + size, name
    return found
