"""Running an endpoint leg: how much memory of the watched cards is in use, before the start and after the stop."""

from collections.abc import Iterable

from labctl.errors import PreflightFailed
from labctl.host.devices.discovery import reader_of
from labctl.host.process_facts import SharedSegment
from labctl.prereg.cards import Cards
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card
from labctl.records.leg import DeviceMemory
from labctl.records.order import WorkOrder

Used = dict[str, int]


def used_device_memory(order: WorkOrder) -> Used:
    """Bytes in use by the identity of each watched card; empty where none is watched, or its tool tells nothing."""
    if order.cards is None:
        return {}
    try:
        seen = reader_of(order.cards, order.devices or Devices()).every_card()
    except PreflightFailed:
        return {}  # a gate then finds no record, which is not a pass
    cards = _watched(seen.cards, order.cards)
    return {card.identity: card.memory_used_bytes for card in cards if card.memory_used_bytes is not None}


def device_memory_left(before: Used, after: Used) -> tuple[DeviceMemory, ...]:
    """What was in use before and after, of every card of which both are known."""
    return tuple(
        DeviceMemory(identity=card, before_bytes=before[card], after_bytes=after[card])
        for card in sorted(before.keys() & after.keys())
    )


def _watched(cards: tuple[Card, ...], wanted: Cards) -> Iterable[Card]:
    if isinstance(wanted.identities, str):
        return cards[: wanted.count]
    return (card for card in cards if card.identity in wanted.identities)


class Baseline:
    """What a start must give back: shared memory that it was seen with, and memory of cards as it was before."""

    def __init__(self, order: WorkOrder) -> None:
        self.segments: set[SharedSegment] = set()
        self.device_memory = used_device_memory(order)
