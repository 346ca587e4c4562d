"""Whole caches rebuilt from a row's raw sample: digests that were recorded, computed again from bytes."""

from base64 import b64decode
from hashlib import sha256
from math import prod
from struct import unpack

from labctl.analyze.component.draws import INTEGERS, draw_bytes
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.layout import ELEMENT_BYTES
from labctl.analyze.gates.findings import Findings
from labctl.records.component_row import DrawnTensor, RowRecord

SAMPLE_BYTES = 2048
WORD_DIGITS = 16


def judge_sample(findings: Findings, worked: Worked, row: RowRecord) -> None:
    """Judge the raw bytes of one row: they must be there where they are small, and give both digests of their cache."""
    where = worked.row_name(row)
    layout, first = worked.record.cache_layout, worked.record.caches
    if not first or layout is None:
        findings.equal("a sample without caches", where, None, row.sample)
        return
    chosen = sampled_cache(worked.pre_import.nonce, row.row, len(first))
    slots = slots_of(row, layout.slots_input)
    size_bytes = _slot_bytes(first[chosen], layout.slot_dim) * len(slots)
    sample = row.sample
    findings.equal("a sample", where, size_bytes <= SAMPLE_BYTES, sample is not None)
    if sample is None:
        return
    findings.equal("the cache of the sample", where, chosen, sample.cache)
    before = draw_bytes(first[chosen])
    pair = next((cache for cache in row.caches if cache.index == chosen), None)
    if before is None or pair is None:
        findings.lacks(f"{where}: the cache of the sample")
        return
    raw = b64decode(sample.base64)
    findings.equal("bytes of the sample", where, size_bytes, len(raw))
    if len(raw) == size_bytes:
        whole = rebuilt(before, (first[chosen], layout.slot_dim), slots, raw)
        challenged = whole + f"/{worked.pre_import.nonce}/{row.row}".encode()
        digests = (sha256(whole).hexdigest(), sha256(challenged).hexdigest())
        findings.equal("digests of the rebuilt cache", where, digests, (pair.candidate.sha256, pair.challenge_sha256))


def sampled_cache(nonce: str, row: int, caches: int) -> int:
    """Which cache a row's sample is of: nobody knows before the packet is consumed."""
    return int(sha256(f"{nonce}/{row}".encode()).hexdigest()[:WORD_DIGITS], 16) % caches


def slots_of(row: RowRecord, name: str) -> list[int]:
    """The slots that a row writes, drawn again; none where the input is not one of integers."""
    drawn = next((one for one in row.inputs if one.tensor.name == name), None)
    data = None if drawn is None else draw_bytes(drawn)
    if drawn is None or data is None or drawn.tensor.dtype not in INTEGERS:
        return []
    return list(unpack(f"<{prod(drawn.tensor.shape)}{INTEGERS[drawn.tensor.dtype]}", data))


def rebuilt(before: bytes, cache: tuple[DrawnTensor, int], slots: list[int], raw: bytes) -> bytes:
    """The bytes of a cache whose slots hold what a row wrote.

    Args:
        before: its bytes before the row.
        cache: the cache, and the dimension that slots count along.
        slots: the slots that the row wrote.
        raw: what it wrote, slot after slot.
    """
    drawn, axis = cache
    shape = drawn.tensor.shape
    inner = prod(shape[axis + 1 :]) * ELEMENT_BYTES[drawn.tensor.dtype]
    whole = bytearray(before)
    at = 0
    for slot in slots:
        for outer in range(prod(shape[:axis])):
            start = (outer * shape[axis] + slot) * inner
            whole[start : start + inner] = raw[at : at + inner]
            at += inner
    return bytes(whole)


def _slot_bytes(drawn: DrawnTensor, axis: int) -> int:
    shape = drawn.tensor.shape
    return prod(shape[:axis] + shape[axis + 1 :]) * ELEMENT_BYTES.get(drawn.tensor.dtype, 0)
