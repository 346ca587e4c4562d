"""A view of foreign evidence as lines for a terminal."""

from collections.abc import Iterator

from labctl.records.evidence_view import EvidenceView
from labctl.records.verdict import Figure
from labctl.report.escape import plain
from labctl.report.numbers import short

GROUPED = frozenset({"count", "tokens"})


def view_lines(view: EvidenceView) -> tuple[str, ...]:
    """The view, one line a fact."""
    return tuple(plain(line) for line in _lines(view))


def _lines(view: EvidenceView) -> Iterator[str]:
    failed = sum(not check.is_met for check in view.checks)
    yield f"{view.folder}: {len(view.files)} files; another lab's evidence, not a sealed run; it authorizes nothing"
    yield (
        f"checks: {len(view.checks) - failed} hold, {failed} do not; findings: {len(view.findings)}; "
        f"missing: {len(view.missing)}"
    )
    yield from _section("what it says of itself", (f"{name}: {value}" for name, value in view.facts))
    yield from _section("metrics", _metrics(view))
    yield from _section(
        "checks",
        (
            f"{'holds' if one.is_met else 'FAILS'}  {one.what}: expected {one.expected}, observed {one.observed}"
            for one in view.checks
        ),
    )
    yield from _section("graphs", view.topology)
    yield from _section("findings", (f"{one.where}: {one.count} x {one.what}" for one in view.findings))
    yield from _section("missing", view.missing)


def _metrics(view: EvidenceView) -> Iterator[str]:
    found = {one.name: one for one in view.metrics}
    if {"accepted_tokens", "draft_tokens", "drafts"} <= found.keys():
        counts = [_grouped(found[name]) for name in ("accepted_tokens", "draft_tokens", "drafts")]
        rates = [
            f"{float(found[name].decimal):.4f}" for name in ("accepted_per_cycle", "emitted_per_cycle") if name in found
        ]
        yield f"{counts[0]} accepted of {counts[1]} drafted in {counts[2]} cycles: {' accepted, '.join(rates)} emitted"
    for one in view.metrics:
        where = f" ({one.where})" if one.where else ""
        yield f"{one.name}{where} {_grouped(one)} {one.unit}"


def _grouped(one: Figure) -> str:
    return f"{int(one.value):,}" if one.unit in GROUPED and one.value.isdecimal() else short(one)


def _section(title: str, lines: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    indented = [f"  {line}" for line in lines]
    if indented:
        yield f"{title}:"
        yield from indented
