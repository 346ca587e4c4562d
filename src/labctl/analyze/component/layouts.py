"""Gate `layouts`: each tensor lies as its declaration makes it lie; nobody types an expected stride or offset in."""

from labctl.analyze.component.declared import boundary_layout, buffer_layouts
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.layout import Layout
from labctl.analyze.gates.findings import Findings
from labctl.records.component_row import Place, RowRecord, TensorRecord


def judge_layouts(findings: Findings, worked: Worked) -> None:
    """Judge the layouts of one card."""
    device = None if worked.record.device is None else worked.record.device.device
    for row in worked.every_row():
        _judge_boundaries(findings, worked, row)
        _judge_buffers(findings, worked, row)
        _judge_caches(findings, worked, row)
        devices = {tensor.device for tensor in _tensors(row)}
        findings.equal("device of every tensor", worked.row_name(row), {device}, devices)


def _judge_boundaries(findings: Findings, worked: Worked, row: RowRecord) -> None:
    declared = {boundary.name: boundary for boundary in worked.said.boundaries}
    for pair in row.boundaries:
        boundary = declared.get(pair.name)
        if boundary is None:
            continue  # complete_rows says so
        expected = boundary_layout(worked.said, boundary, row.case)
        for side, tensor in (("control", pair.control), ("candidate", pair.candidate)):
            where = f"{worked.row_name(row)}, boundary {pair.name}, {side}"
            _judge_layout(findings, where, expected, tensor)
            findings.equal("bytes", where, expected.size_bytes, tensor.bytes)


def _judge_buffers(findings: Findings, worked: Worked, row: RowRecord) -> None:
    expected = buffer_layouts(worked.said, row.case)
    for place in row.buffers:
        if place.name in expected:
            where = f"{worked.row_name(row)}, buffer {place.name}"
            layout = expected[place.name]
            _judge_layout(findings, where, layout, place)
            storage_bytes = layout.storage_elements * layout.element_bytes
            findings.equal("bytes of the storage", where, storage_bytes, place.storage_bytes)


def _judge_caches(findings: Findings, worked: Worked, row: RowRecord) -> None:
    first = dict(enumerate(worked.record.caches))
    for cache in row.caches:
        if cache.index in first:
            expected = first[cache.index].tensor
            for side, tensor in (("control", cache.control), ("candidate", cache.candidate)):
                where = f"{worked.row_name(row)}, boundary {cache.name}, layer {cache.index}, {side}"
                findings.equal("layout", where, _form(expected), _form(tensor))
                findings.equal("bytes", where, expected.bytes, tensor.bytes)


def _judge_layout(findings: Findings, where: str, expected: Layout, found: Place) -> None:
    sides = (expected.shape, expected.stride, expected.storage_offset, expected.dtype)
    for what, one, other in zip(("shape", "stride", "storage offset", "type"), sides, _form(found), strict=True):
        findings.equal(what, where, one, other)


def _form(place: Place) -> tuple[tuple[int, ...], tuple[int, ...], int, str]:
    return place.shape, place.stride, place.storage_offset, place.dtype


def _tensors(row: RowRecord) -> list[Place]:
    sides: list[TensorRecord] = [one.tensor for one in row.inputs]
    for pair in (*row.boundaries, *row.caches):
        sides += [pair.control, pair.candidate]
    return [*sides, *row.buffers]
