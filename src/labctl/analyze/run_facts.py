"""What every kind of run has, whatever its legs hold: enough to hold packet, marker and journal against each other."""

from collections.abc import Sequence
from typing import Protocol

from labctl.packet.model import Packet
from labctl.records.marker import Marker
from labctl.records.run import JournalEntry, Outcome


class LegFacts(Protocol):
    """One leg of any kind."""

    @property
    def folder(self) -> str:
        """Its folder's name."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def is_closed(self) -> bool:
        """Whether it has a manifest of its own."""


class RunFacts(Protocol):
    """One run of any kind."""

    @property
    def packet(self) -> Packet:
        """The packet."""

    @property
    def packet_id(self) -> str:
        """Its digest."""

    @property
    def marker(self) -> Marker:
        """The marker."""

    @property
    def order(self) -> tuple[str, ...]:
        """The legs in the order that had to run."""

    @property
    def legs(self) -> Sequence[LegFacts]:
        """The legs that are there."""

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """The steps."""

    @property
    def outcome(self) -> Outcome | None:
        """How the run ended."""

    @property
    def is_aborted(self) -> bool:
        """Whether it was aborted."""
