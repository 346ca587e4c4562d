"""Gate `complete_rows`: every planned row is there once, on fresh inputs that the seed gives, with every tensor."""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from math import prod

from labctl.analyze.component.declared import cache_count, planned_rows
from labctl.analyze.component.draws import drawn_sha256
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.layout import ELEMENT_BYTES
from labctl.analyze.component.samples import judge_sample
from labctl.analyze.component.seeds import derived_seed
from labctl.analyze.gates.findings import Findings
from labctl.records.component_row import BoundaryRecord, DrawnTensor, RowRecord, UniformDraw

TELLING_BYTES = 16
"""Smaller tensors may be zero, or alike in two rows, by chance."""


def judge_complete_rows(findings: Findings, worked: Worked) -> None:
    """Judge the rows of one card."""
    planned = planned_rows(worked.said)
    found = [(row.row, row.arm, row.case, row.repeat) for row in worked.rows]
    findings.equal("rows", worked.leg, [(one.row, one.arm, one.case, one.repeat) for one in planned], found)
    names = [boundary.name for boundary in worked.said.boundaries]
    layers = list(range(cache_count(worked.said)))
    for row in worked.every_row():
        where = worked.row_name(row)
        findings.equal("boundaries", where, names, [boundary.name for boundary in row.boundaries])
        findings.equal("caches", where, layers, [cache.index for cache in row.caches])
        place = (row.arm, row.case, row.repeat)
        findings.equal("seed", where, derived_seed(worked.said.seed, worked.card_index, place), row.row_seed)
        _judge_inputs(findings, where, row)
        _judge_pairs(findings, where, row)
        _judge_caches(findings, worked, row)
        judge_sample(findings, worked, row)
    _judge_times(findings, worked)


def judge_fresh(findings: Findings, every: Iterable[Worked]) -> None:
    """Judge that no two rows of the run, on whatever card, were given or made the same."""
    seen: dict[str, list[str]] = {}
    for worked in every:
        for row in worked.every_row():
            for what, digest in _fresh_digests(row):
                seen.setdefault(f"{what} {digest}", []).append(worked.row_name(row))
    findings.holds("tensors that are drawn or made anew", "run", ("at least one", len(seen)), is_met=bool(seen))
    for what, places in seen.items():
        kind, _, digest = what.rpartition(" ")
        if len(places) > 1:
            findings.equal(f"rows whose {kind} has digest {digest[:12]}", places[1], 1, len(places))


def _fresh_digests(row: RowRecord) -> list[tuple[str, str]]:
    drawn = [(f"input {one.tensor.name}", one.tensor) for one in row.inputs if isinstance(one.draw, UniformDraw)]
    made = [(f"boundary {one.name}", one.control) for one in row.boundaries]
    made += [(f"cache {one.index}", one.control) for one in row.caches]
    return [(what, tensor.sha256) for what, tensor in (*drawn, *made) if tensor.bytes >= TELLING_BYTES]


def _judge_inputs(findings: Findings, where: str, row: RowRecord) -> None:
    findings.holds("inputs", where, ("at least one", len(row.inputs)), is_met=bool(row.inputs))
    for drawn in row.inputs:
        judge_drawn(findings, f"{where}, input {drawn.tensor.name}", drawn, row.row_seed)
    digests = tuple(drawn.tensor.sha256 for drawn in row.inputs)
    findings.equal("inputs after both sides ran", where, digests, row.inputs_after)


def judge_drawn(findings: Findings, where: str, drawn: DrawnTensor, seed: int) -> None:
    """Judge that a drawn tensor is the one that the seed gives under its name."""
    findings.equal("stream of the draw", where, f"{seed}/{drawn.tensor.name}", drawn.stream)
    findings.equal("digest of the tensor, drawn again", where, drawn_sha256(drawn), drawn.tensor.sha256)


def _judge_pairs(findings: Findings, where: str, row: RowRecord) -> None:
    pairs: list[tuple[str, BoundaryRecord]] = [(f"boundary {one.name}", one) for one in row.boundaries]
    pairs += [(f"boundary {one.name}, layer {one.index}", one) for one in row.caches]
    for name, pair in pairs:
        place = f"{where}, {name}"
        is_said = pair.first_difference is not None
        findings.equal("a first difference", place, pair.control.sha256 != pair.candidate.sha256, is_said)
        _judge_difference(findings, place, pair)
        for side, tensor in (("control", pair.control), ("candidate", pair.candidate)):
            is_constant = tensor.bytes >= TELLING_BYTES and tensor.sha256 == _zeros_sha256(tensor.bytes)
            findings.equal(f"{side} of zeros only", place, expected=False, observed=is_constant)
    _judge_challenges(findings, where, [pair for _, pair in pairs])


def _judge_difference(findings: Findings, place: str, pair: BoundaryRecord) -> None:
    """A verdict repeats place and bits of a first difference, so they must be possible for such a tensor."""
    first, control = pair.first_difference, pair.control
    if first is None or (control.shape, control.dtype) != (pair.candidate.shape, pair.candidate.dtype):
        return  # tensors of two forms are told apart byte by byte, without a place
    digits = 2 * ELEMENT_BYTES.get(control.dtype, 0)
    bits = (first.expected_bits, first.actual_bits)
    is_within = len(first.index) == len(control.shape) and all(
        at < extent for at, extent in zip(first.index, control.shape, strict=True)
    )
    is_told = {len(one) for one in bits} == {digits} and first.differing_elements <= prod(control.shape)
    sides = (f"an element of {list(control.shape)}, two times {digits} digits", (first.index, *bits))
    is_met = is_within and is_told and bits[0] != bits[1]
    findings.holds("place and bits of the first difference", place, sides, is_met=is_met)


def _judge_challenges(findings: Findings, where: str, pairs: list[BoundaryRecord]) -> None:
    """Content and challenged content have digests of their own, one for one: equal boundaries are possible."""
    both = {(pair.candidate.sha256, pair.challenge_sha256) for pair in pairs}
    plain, challenged = {one for one, _ in both}, {other for _, other in both}
    counts = (len(both), len(both), len(both), 0)
    found = (len(both), len(plain), len(challenged), len(plain & challenged))
    findings.equal("digests, plain and challenged, one for one", where, counts, found)


def _judge_caches(findings: Findings, worked: Worked, row: RowRecord) -> None:
    first = dict(enumerate(worked.record.caches))
    for cache in row.caches:
        before = first[cache.index].tensor.sha256 if cache.index in first else None
        if worked.record.cache_layout is None:
            before = cache.candidate.sha256  # without slots, all of it may be written
        place = f"{worked.row_name(row)}, boundary {cache.name}, layer {cache.index}"
        findings.equal("digest of what the row did not write", place, before, cache.rest_sha256)


def _judge_times(findings: Findings, worked: Worked) -> None:
    stamps = [worked.record.started_mono_ns]
    for row in worked.rows:
        stamps += [row.started_mono_ns, row.ended_mono_ns]
    stamps.append(worked.record.ended_mono_ns)
    findings.equal("times of the rows, one after the other", worked.leg, sorted(stamps), stamps)


@lru_cache(maxsize=1024)
def _zeros_sha256(size_bytes: int) -> str:
    return sha256(bytes(size_bytes)).hexdigest()
