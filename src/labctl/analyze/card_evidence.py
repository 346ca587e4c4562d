"""What a run that starts no server says: cards, and one leg a card, or one leg with all ranks in it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from labctl.analyze.evidence import is_closed_in
from labctl.errors import Problem
from labctl.packet.model import Packet
from labctl.prereg.any_campaign import registered_order
from labctl.records.devices import Discovery
from labctl.records.leg import LegExit, StopCause
from labctl.records.marker import Marker
from labctl.records.order import LegStarted
from labctl.records.run import JournalEntry, Outcome, OutcomeKind


@dataclass(frozen=True, slots=True)
class LegHead:
    """What every leg has; what its folder does not hold is None."""

    folder: str
    name: str
    index: int
    manifest_sha256: str | None
    order_sha256: str | None
    started: LegStarted | None
    exit: LegExit | None

    @property
    def is_closed(self) -> bool:
        """Whether the leg has a manifest of its own that holds."""
        return self.manifest_sha256 is not None

    @property
    def because(self) -> str | None:
        """Why everything must be there; None where the leg did not complete."""
        return "the leg completed" if self.exit is not None and self.exit.cause is StopCause.COMPLETED else None


HeadT = TypeVar("HeadT", bound=LegHead)


@dataclass(frozen=True, slots=True)
class CardEvidence(Generic[HeadT]):
    """One run; `conflicts` is empty where every record agrees with every other."""

    packet: Packet
    packet_id: str
    marker: Marker
    marker_sha256: str
    discovery: Discovery | None
    """Every card, before any affinity."""
    discovery_sha256: str | None
    legs: tuple[HeadT, ...]
    journal: tuple[JournalEntry, ...]
    outcome: Outcome | None
    conflicts: tuple[Problem, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """The legs in the registered order."""
        return registered_order(self.packet.preregistration)

    @property
    def is_aborted(self) -> bool:
        """Whether the run was aborted."""
        return self.outcome is not None and self.outcome.outcome is OutcomeKind.ABORTED

    def was_cut_short(self, leg: str) -> bool:
        """Whether a leg belongs to an aborted run whose journal never closes it: it may hold half of anything."""
        return self.is_aborted and not is_closed_in(self.journal, leg)
