"""Tensors as records: where they lie, how, the digest of their raw bytes, and where two of them first differ."""

import ctypes
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

Record = dict[str, Any]

_LIBC = ctypes.CDLL(None)
_LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def place_record(name: str, tensor: Tensor) -> Record:
    """Where a tensor lies and how."""
    storage = tensor.untyped_storage()
    return {
        "name": name,
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "dtype": dtype_name(tensor.dtype),
        "device": device_name(tensor.device),
        "storage_offset": tensor.storage_offset(),
        "data_ptr": tensor.data_ptr(),
        "storage_ptr": storage.data_ptr(),
        "storage_bytes": storage.nbytes(),
    }


def tensor_record(name: str, tensor: Tensor) -> Record:
    """A tensor's place, and the digest of its content."""
    return snapshot_record(name, tensor, on_host(tensor))


def snapshot_record(name: str, tensor: Tensor, snapshot: Tensor) -> Record:
    """As `tensor_record`, the content being in a host tensor already."""
    return _content(place_record(name, tensor), snapshot, content_sha256(snapshot))


def tensor_records(tensors: Mapping[str, Tensor]) -> list[Record]:
    """Records of named tensors, by name."""
    return [tensor_record(name, tensor) for name, tensor in sorted(tensors.items())]


def place_records(tensors: Mapping[str, Tensor]) -> list[Record]:
    """Places of named tensors, by name."""
    return [place_record(name, tensor) for name, tensor in sorted(tensors.items())]


def on_host(tensor: Tensor) -> Tensor:
    """A contiguous host tensor of the content: the tensor itself where it is one."""
    if tensor.device.type == "cpu" and tensor.is_contiguous():
        return tensor
    return tensor.detach().contiguous().cpu()


def host_copy(tensor: Tensor) -> Tensor:
    """A contiguous host tensor that later writes to the tensor do not reach."""
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


def content_sha256(snapshot: Tensor) -> str:
    """SHA-256 of a contiguous host tensor's raw bytes, read in place."""
    return hashlib.sha256(raw_bytes(snapshot)).hexdigest()


def challenged_record(name: str, tensor: Tensor, snapshot: Tensor, challenge: bytes) -> tuple[Record, str]:
    """As `snapshot_record`, and the digest of the bytes and the challenge behind them, in one pass."""
    digest = hashlib.sha256(raw_bytes(snapshot))
    record = _content(place_record(name, tensor), snapshot, digest.hexdigest())
    digest.update(challenge)
    return record, digest.hexdigest()


def raw_bytes(snapshot: Tensor) -> memoryview:
    """The raw bytes of a contiguous host tensor, in place."""
    if snapshot.nbytes == 0:
        return memoryview(b"")
    return memoryview((ctypes.c_ubyte * snapshot.nbytes).from_address(snapshot.data_ptr()))


def from_bytes(data: bytes, dtype: torch.dtype, shape: Iterable[int]) -> Tensor:
    """A host tensor of raw little-endian elements."""
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(tuple(shape))


class KnownTensors:
    """Tensors by name whose digests are known: one that still holds the very same bytes is not hashed again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Tensor, str]] = {}

    def record(self, key: str, name: str, tensor: Tensor) -> Record:
        """As `tensor_record`; `key` names the tensor among all that are known."""
        content = on_host(tensor)
        known = self._known.get(key)
        if known is not None and same_bits(known[0], content):
            return _content(place_record(name, tensor), content, known[1])
        record = snapshot_record(name, tensor, content)
        self.learn(key, host_copy(content), record["sha256"])
        return record

    def learn(self, key: str, content: Tensor, sha256: str) -> None:
        """A host tensor that nobody else writes to, and its digest."""
        self._known[key] = (content, sha256)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two contiguous host tensors hold the same bytes; NaN and signed zero are bits too."""
    size = one.nbytes
    return size == other.nbytes and bool(_LIBC.memcmp(one.data_ptr(), other.data_ptr(), size) == 0)


def first_difference(control: Tensor, candidate: Tensor) -> Record | None:
    """Where two contiguous host tensors first differ in bits; None: nowhere."""
    if control.shape != candidate.shape or control.dtype != candidate.dtype:
        return _first_byte_difference(bytes(raw_bytes(control)), bytes(raw_bytes(candidate)))
    if same_bits(control, candidate):
        return None
    words = WORDS[control.element_size()]
    expected, actual = control.view(words), candidate.view(words)
    differing = (expected != actual).flatten()
    place = int(differing.to(torch.uint8).argmax())
    return {
        "index": _index(place, control.shape),
        "expected_bits": _bits(control, place),
        "actual_bits": _bits(candidate, place),
        "differing_elements": int(differing.sum()),
    }


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """The type's name without `torch.`."""
    return str(dtype).partition(".")[2]


@cache
def device_name(device: torch.device) -> str:
    """The device's type, and its number where it has one."""
    return str(device)


def _content(place: Record, snapshot: Tensor, sha256: str) -> Record:
    place["bytes"] = snapshot.nbytes
    place["sha256"] = sha256
    return place


def _first_byte_difference(expected: bytes, actual: bytes) -> Record | None:
    if expected == actual:
        return None
    pairs = enumerate(zip(expected, actual, strict=False))
    place = next((number for number, (one, other) in pairs if one != other), min(len(expected), len(actual)))
    return {
        "index": [],
        "expected_bits": expected[place : place + 1].hex() or "00",
        "actual_bits": actual[place : place + 1].hex() or "00",
        "differing_elements": max(1, sum(one != other for one, other in zip(expected, actual, strict=False))),
    }


def _index(place: int, shape: torch.Size) -> list[int]:
    index = []
    for extent in reversed(shape):
        place, step = divmod(place, extent)
        index.append(step)
    return index[::-1]


def _bits(snapshot: Tensor, place: int) -> str:
    width = snapshot.element_size()
    return bytes(raw_bytes(snapshot)[place * width : (place + 1) * width])[::-1].hex()
