"""Gate `rows_exact`: every boundary and every cache of every row is equal, digest by digest; no flag is believed."""

from labctl.analyze.component.declared import layer_axis
from labctl.analyze.component.evidence import Worked
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.records.component_row import BoundaryRecord, RowRecord


def judge_rows_exact(findings: Findings, worked: Worked) -> int:
    """Judge one card; gives the number of pairs of tensors that were found equal."""
    counts = [0, 0]
    axes = {boundary.name: layer_axis(worked.said, boundary) for boundary in worked.said.boundaries}
    for row in worked.rows:
        where = worked.row_name(row)
        for boundary in row.boundaries:
            counts[0] += _judge_pair(findings, f"{where}, boundary {boundary.name}", boundary, axes.get(boundary.name))
        for cache in row.caches:
            place = f"{where}, boundary {cache.name}, layer {cache.index}"
            counts[1] += _judge_pair(findings, place, cache, None)
    assertions = sum(counts)
    findings.add(
        [
            figure("equal_boundaries", worked.leg, counts[0], "count"),
            figure("equal_caches", worked.leg, counts[1], "count"),
            figure("assertions", worked.leg, assertions, "count"),
        ]
    )
    return assertions


def differing_pairs(row: RowRecord) -> list[BoundaryRecord]:
    """Boundaries and caches of one row whose two digests differ."""
    return [one for one in (*row.boundaries, *row.caches) if one.control.sha256 != one.candidate.sha256]


def _judge_pair(findings: Findings, where: str, pair: BoundaryRecord, axis: int | None) -> bool:
    is_equal = pair.control.sha256 == pair.candidate.sha256
    first = pair.first_difference
    if first is None:
        findings.equal("digest of the raw bytes", where, pair.control.sha256, pair.candidate.sha256)
        return is_equal
    has_layer = axis is not None and axis < len(first.index)
    layer = f", layer {first.index[axis]}" if axis is not None and has_layer else ""
    sides = (f"bits 0x{first.expected_bits}", f"bits 0x{first.actual_bits}")
    index = f"[{', '.join(map(str, first.index))}]"
    findings.holds("first element that differs", f"{where}{layer}, index {index}", sides, is_met=is_equal)
    return is_equal
