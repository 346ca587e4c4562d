"""What a vendor's reader gives, and the protocol that all readers have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from labctl.prereg.cards import CardVendor
from labctl.records.devices import Card, DeviceTool, ToolAnswer


@dataclass(frozen=True, slots=True)
class Seen:
    """Cards as one look found them."""

    cards: tuple[Card, ...]
    tool: DeviceTool
    answers: tuple[ToolAnswer, ...] = ()
    remarks: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class CardReader(Protocol):
    """One vendor's way of telling about cards."""

    @property
    def vendor(self) -> CardVendor:
        """Whose cards it tells about."""

    def every_card(self) -> Seen:
        """All cards of the machine.

        Raises:
            PreflightFailed: the vendor's tool or library gives no answer.
        """

    def visible_cards(self, environment: Mapping[str, str]) -> Seen:
        """The cards that a child of this process would see, given its environment.

        Raises:
            PreflightFailed: the vendor's tool or library gives no answer.
        """
