"""Contradictions in what was written before the first leg: the machine, preflight, the copies beside the packet."""

from collections.abc import Iterator

from labctl.analyze.evidence import conflict, differences
from labctl.analyze.record_reader import RecordReader
from labctl.analyze.run_facts import RunFacts
from labctl.digest import sha256_hex
from labctl.errors import Problem
from labctl.frozen import canonical_json
from labctl.protocol import Event
from labctl.records.marker import PreflightPassed
from labctl.records.run import HostIdentity

INPUTS = "packet/inputs/"
APPROVALS = "packet/approvals/"


def host_conflicts(reader: RecordReader, evidence: RunFacts) -> Iterator[Problem]:
    """What the records of the machine and of preflight say, held against packet and marker."""
    is_recorded = any(entry.event is Event.PREFLIGHT_RECORDED for entry in evidence.journal)
    because = "preflight was recorded" if is_recorded else None
    source = reader if is_recorded else reader.leniently()
    packet, marker = evidence.packet, evidence.marker
    identity = source.record("host/identity.json", HostIdentity, because=because)
    if identity is not None:
        yield from differences(
            "data/host/identity.json",
            [
                ("machine", marker.host.machine_id_sha256, identity.machine_id_sha256),
                ("boot", marker.host.boot_id, identity.boot_id),
            ],
        )
    preflight = source.record("host/preflight.json", PreflightPassed, because=because)
    if preflight is not None:
        yield from _preflight_conflicts(evidence, preflight)
    allowed = source.bytes_of("host/env.json", because=because)
    if allowed is not None:
        expected = canonical_json({"allowed": list(packet.environment_allowed)})
        yield from differences("data/host/env.json", [("allowed names", expected, allowed)])


def copy_conflicts(reader: RecordReader, evidence: RunFacts) -> Iterator[Problem]:
    """Inputs that the packet does not pin, and approvals that the marker counted and that are not there."""
    pinned = {file.role for file in evidence.packet.files}
    for name in sorted(reader.names):
        if name.startswith(INPUTS) and name.removeprefix(INPUTS) not in pinned:
            yield conflict(f"data/{name}", "only inputs that the packet pins", "another")
    approvals = (reader.files.read(name) for name in sorted(reader.names) if name.startswith(APPROVALS))
    missing = set(evidence.marker.approvals) - {sha256_hex(data) for data in approvals}
    yield from differences("data/packet/approvals", [("approvals that the marker counted", [], sorted(missing))])


def _preflight_conflicts(evidence: RunFacts, preflight: PreflightPassed) -> Iterator[Problem]:
    marker = evidence.marker
    unmet = [finding.check for finding in preflight.findings if not finding.is_met]
    yield from differences(
        "data/host/preflight.json",
        [
            ("packet", evidence.packet_id, preflight.packet_sha256),
            ("file systems", marker.file_systems, preflight.file_systems),
            ("rehearsal", marker.rehearsal_seal_sha256, preflight.rehearsal_seal_sha256),
            ("checks that do not hold", [], unmet),
        ],
    )
