"""The closed list of what a run may hold."""

from labctl.rundir import SAFE_PART

# Paths below data/; `*` stands for what a safe name may hold.
PAYLOAD_KINDS = (
    "packet/prereg.yaml",
    "packet/packet.json",
    "packet/engine.json",
    "packet/inputs/*",
    "packet/approvals/*",
    "packet/marker.copy.json",
    "host/identity.json",
    "host/env.json",
    "host/devices.json",
    "host/preflight.json",
    "legs/*/order.json",
    "legs/*/LEG_STARTED.json",
    "legs/*/wire/*",
    "legs/*/metrics-before.prom",
    "legs/*/metrics-after.prom",
    "legs/*/process.json",
    "legs/*/maps.txt",
    "legs/*/server.log",
    "legs/*/telemetry.jsonl",
    "legs/*/postflight.json",
    "legs/*/exit.json",
    "legs/*/leg.log",
    "legs/*/discovery.json",
    "legs/*/pre-import.json",
    "legs/*/rows.jsonl",
    "legs/*/component.json",
    "legs/*/worker.log",
    "legs/*/rank-*.jsonl",
    "legs/*/rank-*.log",
    "legs/*/rank-*.exit.json",
    "legs/*/leg-manifest-sha256.txt",
    "phase1/*.json",
    "analyzers/*.py",
    "journal.jsonl",
    "outcome.json",
    "layout.json",
)


def is_payload_kind(relative: str) -> bool:
    """Whether a path below data/ is of a kind that a run may hold."""
    parts = relative.split("/")
    if not all(SAFE_PART.match(part) for part in parts):
        return False
    return any(_matches(parts, kind.split("/")) for kind in PAYLOAD_KINDS)


def _matches(parts: list[str], kind: list[str]) -> bool:
    if len(parts) != len(kind):
        return False
    return all(_part_matches(part, wanted) for part, wanted in zip(parts, kind, strict=True))


def _part_matches(part: str, wanted: str) -> bool:
    head, star, tail = wanted.partition("*")
    if not star:
        return part == wanted
    return part.startswith(head) and part.endswith(tail) and len(part) >= len(head) + len(tail)
