"""Packets as a table for people: what became of each, its verdict, and when it was consumed."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.errors import LabctlError
from labctl.records.seal import AnalysisSeal
from labctl.rundir import SEAL

if TYPE_CHECKING:
    from labctl.campaign.status import PacketStatus

HEADER = ("campaign", "attempt", "kind", "packet", "state", "verdict", "consumed (UTC)")
SHOWN_ID = 12
SEAL_LIMIT_BYTES = 4 << 20
VERDICT_LIMIT_BYTES = 1 << 28
NS_PER_S = 1_000_000_000
WITHOUT_REMARK = ("unconsumed", "sealed_completed")
SEVERAL = "several analyses"
UNREADABLE = "unreadable analysis"


def facts_of(status: "PacketStatus") -> dict[str, object]:
    """Everything about a packet, for machines; its verdict is null where no sealed analysis names its run's seal."""
    return status.facts() | {"consumed_utc": _utc(status), "verdict": verdict_of(status)}


def table(every: Sequence["PacketStatus"]) -> Iterator[str]:
    """One line a packet, and below them why some of them did not complete."""
    yield from _aligned((HEADER, *map(_cells, every)))
    for one in every:
        if one.state not in WITHOUT_REMARK:
            yield f"{one.frozen.packet.id[:SHOWN_ID]}: {one.why}"


def table_of_runs(every: Sequence["PacketStatus"]) -> Iterator[str]:
    """The same with the folder of each run."""
    yield from _aligned(((*HEADER, "run"), *((*_cells(one), _shown_path(one.run)) for one in every)))


def verdict_of(status: "PacketStatus") -> str | None:
    """The verdict of the analysis that stands, found by the run's name; only `labctl report` verifies its bytes."""
    if status.run is None or not (status.run / SEAL).is_file():
        return None
    try:
        return _standing(status.run, status.frozen.roots.analyses)
    except (LabctlError, ValueError, KeyError, TypeError):
        return UNREADABLE


def _standing(run: Path, analyses: Path) -> str | None:
    subject = sha256_hex(read_regular(run / SEAL, limit_bytes=SEAL_LIMIT_BYTES))
    found: dict[str, Path] = {}
    superseded = set()
    for path in sorted(analyses.glob(f"{run.name}-*/{SEAL}")):
        data = read_regular(path, limit_bytes=SEAL_LIMIT_BYTES)
        seal = AnalysisSeal.from_json(data, str(path))
        if seal.subject[0].digest.sha256 == subject:
            found[sha256_hex(data)] = path.parent
            superseded.add(seal.predicate.facts.get("supersedes"))
    standing = [folder for digest, folder in found.items() if digest not in superseded]
    if len(standing) != 1:
        return SEVERAL if standing else None
    data = read_regular(standing[0] / "data" / "verdict.json", limit_bytes=VERDICT_LIMIT_BYTES)
    return str(json.loads(data)["verdict"])


def _cells(status: "PacketStatus") -> tuple[str, ...]:
    packet = status.frozen.packet
    name, attempt = packet.preregistration.id, str(packet.attempt)
    said = (status.state.value, verdict_of(status) or "-", _utc(status) or "-")
    return (name, attempt, packet.kind, packet.id[:SHOWN_ID], *said)


def _aligned(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    every = tuple(rows)
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    for row in every:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _utc(status: "PacketStatus") -> str | None:
    if status.consumed_wall_ns is None:
        return None
    return f"{datetime.fromtimestamp(status.consumed_wall_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S}"


def _shown_path(run: Path | None) -> str:
    if run is None:
        return "-"
    here = Path.cwd()
    return str(run.relative_to(here) if run.is_relative_to(here) else run)
