"""What became of each packet: five states, read from the marker, the ledger, the run and its seal."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from labctl.campaign.abort import is_witnessed
from labctl.campaign.lookup import FrozenPacket
from labctl.campaign.witness import is_foreign_seal
from labctl.errors import LabctlError
from labctl.ledger import find_consumed
from labctl.marker_state import MarkerAbsent, MarkerValid, read_marker_state
from labctl.records.run import JournalEntry, Outcome, OutcomeKind
from labctl.rundir import RunPaths
from labctl.seal.verify import SealState, seal_state


class PacketState(StrEnum):
    """States of a packet."""

    UNCONSUMED = "unconsumed"
    SPENT_EMPTY = "spent_empty"
    SPENT_UNSEALED = "spent_unsealed"
    SEALED_COMPLETED = "sealed_completed"
    SEALED_ABORTED = "sealed_aborted"


@dataclass(frozen=True, slots=True)
class PacketStatus:
    """The state of one packet, and why."""

    frozen: FrozenPacket
    state: PacketState
    why: str
    run: Path | None
    consumed_wall_ns: int | None = None

    def facts(self) -> dict[str, object]:
        """What is known, for machines."""
        packet = self.frozen.packet
        return {
            "campaign": packet.preregistration.id,
            "attempt": packet.attempt,
            "kind": packet.kind,
            "packet": packet.id,
            "state": self.state.value,
            "why": self.why,
            "run": str(self.run) if self.run else None,
            "consumed_wall_ns": self.consumed_wall_ns,
        }


def packet_status(frozen: FrozenPacket) -> PacketStatus:
    """Read the state of a packet; nothing is verified by digest here, and nothing is changed."""
    marker = read_marker_state(frozen.roots.authorization, frozen.packet.id)
    if isinstance(marker, MarkerValid):
        status = _spent(frozen, frozen.roots.runs / marker.marker.run_dir)
        return replace(status, consumed_wall_ns=marker.marker.wall_ns)
    if not isinstance(marker, MarkerAbsent):
        why = "something that is not a whole marker lies at the marker's path, so the packet counts as spent"
        return PacketStatus(frozen, PacketState.SPENT_EMPTY, why, None)
    line = find_consumed(frozen.roots.authorization.ledger, frozen.packet.id)
    if line is None:
        return PacketStatus(frozen, PacketState.UNCONSUMED, "no marker", None)
    why = f"the marker is gone, but line {line.seq} of the ledger says that the packet was consumed"
    return PacketStatus(frozen, PacketState.SPENT_UNSEALED, why, None, line.wall_ns)


def _spent(frozen: FrozenPacket, run: Path) -> PacketStatus:
    paths = RunPaths(run)
    if not paths.data.is_dir():
        return PacketStatus(frozen, PacketState.SPENT_EMPTY, "consumed, and then nothing was run", None)
    if seal_state(run) is not SealState.SEALED:
        why = f"{_last_step(paths)}; no seal: `labctl seal abort {run}` seals it as aborted"
        return PacketStatus(frozen, PacketState.SPENT_UNSEALED, why, run)
    if fault := _witness_fault(frozen, run):
        return PacketStatus(frozen, PacketState.SPENT_UNSEALED, fault, run)
    outcome = Outcome.from_json(paths.outcome.read_bytes(), str(paths.outcome))
    if outcome.outcome is OutcomeKind.ABORTED:
        why = f"{outcome.cause}: {outcome.detail[0] if outcome.detail else 'no detail'}"
        return PacketStatus(frozen, PacketState.SEALED_ABORTED, why, run)
    return PacketStatus(frozen, PacketState.SEALED_COMPLETED, outcome.outcome.value, run)


def _witness_fault(frozen: FrozenPacket, run: Path) -> str | None:
    if not is_witnessed(frozen.roots.authorization, run.name):
        return f"sealed, but the ledger has no line for it: `labctl seal abort {run}` adds it"
    if is_foreign_seal(frozen.roots.authorization, run, run.name):
        return "the ledger names another seal: the run was changed after it was sealed; restore it from a copy"
    return None


def _last_step(paths: RunPaths) -> str:
    try:
        lines = paths.journal.read_bytes().splitlines()
        entry = JournalEntry.from_json(lines[-1], "journal")
    except (OSError, IndexError, LabctlError):
        return "the controller ended before its first step"
    return f"the controller ended after {entry.event}{f' of {entry.leg}' if entry.leg else ''}"
