"""Gate `pointers`: the candidate's buffers stay where they are, overlap nothing, and lie in memory that is mapped."""

from collections.abc import Iterable
from itertools import pairwise

from labctl.analyze.component.address_space import AddressSpace
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.layout import ELEMENT_BYTES
from labctl.analyze.gates.findings import Findings
from labctl.records.component_row import Place, RowRecord

PointerMap = dict[str, tuple[int, int]]


def judge_pointers(findings: Findings, worked: Worked, space: AddressSpace | None) -> None:
    """Judge the addresses of one card.

    Args:
        findings: what the gate found so far.
        worked: what the worker wrote.
        space: what the leg saw mapped into the worker; None where it recorded nothing.
    """
    owned = {(one.arm, one.case): _pointer_map(one.buffers) for one in worked.record.owned}
    names = sorted(buffer.name for buffer in worked.said.buffers)
    for row in worked.rows:
        where = worked.row_name(row)
        findings.equal("the candidate's own buffers", where, names, sorted(place.name for place in row.buffers))
        last = owned.get((row.arm, row.case), {})
        findings.equal("addresses of the candidate's buffers, as at the end", where, last, _pointer_map(row.buffers))
        _judge_views(findings, worked, row)
    for inert in worked.inert():
        findings.equal(
            "own buffers at an inert size", worked.row_name(inert.row), ((), ()), (inert.owned, inert.row.buffers)
        )
    _judge_apart(findings, worked)
    _judge_caches(findings, worked)
    _judge_places(findings, worked, space)


def _pointer_map(places: Iterable[Place]) -> PointerMap:
    return {place.name: (place.storage_ptr, place.data_ptr) for place in places}


def _judge_views(findings: Findings, worked: Worked, row: RowRecord) -> None:
    """A boundary of the candidate is a view of its buffer; one of the control lies elsewhere while the buffer lives."""
    of = {boundary.name: boundary.of for boundary in worked.said.boundaries}
    storages = {place.name: place.storage_ptr for place in row.buffers}
    for pair in row.boundaries:
        where = f"{worked.row_name(row)}, boundary {pair.name}"
        storage = storages.get(of.get(pair.name, ""))
        findings.equal("storage of the candidate's view", where, storage, pair.candidate.storage_ptr)
        if row.repeat == 1:
            continue  # a buffer may be made on first use, and lie where the control's tensors had just been freed
        sides = ("none of the candidate's buffers", hex(pair.control.storage_ptr))
        is_apart = pair.control.storage_ptr not in storages.values()
        findings.holds("storage of the control", where, sides, is_met=is_apart)


def _judge_apart(findings: Findings, worked: Worked) -> None:
    """What lives at the same time overlaps nothing: buffers of every size and arm, weights, caches."""
    record = worked.record
    living: list[tuple[str, Place]] = [
        (f"{one.arm} {one.case} {place.name}", place) for one in record.owned for place in one.buffers
    ]
    living += [(f"weight {place.name}", place) for place in record.weights_after]
    living += [(f"cache {drawn.tensor.name}", drawn.tensor) for drawn in record.caches]
    findings.equal("storages that overlap", worked.leg, [], _overlaps(living))
    for row in worked.rows:
        both: list[tuple[str, Place]] = [(f"buffer {place.name}", place) for place in row.buffers]
        both += [(f"input {drawn.tensor.name}", drawn.tensor) for drawn in row.inputs]
        findings.equal("storages that overlap", worked.row_name(row), [], _overlaps(both))


def _judge_caches(findings: Findings, worked: Worked) -> None:
    """Each side's caches stay where they are, apart from the other side's and from whatever else lives as long."""
    first = _caches(worked.rows[0]) if worked.rows else []
    for row in worked.every_row():
        sides = [_pointers(first), _pointers(_caches(row))]
        both = sides[0].keys() & sides[1].keys()  # whether all are there is another gate's question
        expected, observed = ({name: side[name] for name in sorted(both)} for side in sides)
        findings.equal("addresses of the caches, as in the first row", worked.row_name(row), expected, observed)
    living: list[tuple[str, Place]] = [
        (f"{one.arm} {one.case} {place.name}", place) for one in worked.record.owned for place in one.buffers
    ]
    living += [(f"weight {place.name}", place) for place in worked.record.weights_after]
    findings.equal("storages that overlap those of caches", worked.leg, [], _overlaps([*living, *first]))


def _caches(row: RowRecord) -> list[tuple[str, Place]]:
    sides = [(f"cache {cache.index} of the control", cache.control) for cache in row.caches]
    return [*sides, *((f"cache {cache.index} of the candidate", cache.candidate) for cache in row.caches)]


def _pointers(named: list[tuple[str, Place]]) -> PointerMap:
    return {name: (place.storage_ptr, place.data_ptr) for name, place in named}


def _overlaps(named: list[tuple[str, Place]]) -> list[str]:
    spans = sorted((place.storage_ptr, place.storage_ptr + place.storage_bytes, name) for name, place in named)
    return [f"{one[2]} and {other[2]}" for one, other in pairwise(spans) if other[0] < one[1]]


def _judge_places(findings: Findings, worked: Worked, space: AddressSpace | None) -> None:
    """Every address is one that the declared offset gives, and one that the leg saw mapped."""
    places = {(place.name, place.storage_ptr, place.data_ptr): (where, place) for where, place in _places(worked)}
    for where, place in places.values():
        offset_bytes = place.storage_offset * ELEMENT_BYTES.get(place.dtype, 0)
        findings.equal("address of the first element", where, place.storage_ptr + offset_bytes, place.data_ptr)
        if space is not None:
            span = (place.storage_ptr, place.storage_ptr + place.storage_bytes)
            sides = ("memory that the leg saw mapped", f"{span[0]:#x}-{span[1]:#x}")
            findings.holds("storage", where, sides, is_met=space.holds(span))
    if space is None:
        findings.lacks(f"{worked.leg}: no list of the memory that was mapped")


def _places(worked: Worked) -> Iterable[tuple[str, Place]]:
    for row in worked.rows:
        where = worked.row_name(row)
        yield from ((f"{where}, buffer {place.name}", place) for place in row.buffers)
        yield from ((f"{where}, boundary {pair.name}, candidate", pair.candidate) for pair in row.boundaries)
        yield from ((f"{where}, {name}", place) for name, place in _caches(row))
    for one in worked.record.owned:
        yield from ((f"{worked.leg} {one.arm} {one.case}, buffer {place.name}", place) for place in one.buffers)
    yield from ((f"{worked.leg}, weight {place.name}", place) for place in worked.record.weights_after)
