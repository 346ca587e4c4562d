"""Running a leg on cards: the affinity, and the proof that the leg sees exactly the card that was selected."""

from pathlib import Path

from labctl.clock import Clock
from labctl.durable import write_once
from labctl.errors import PreflightFailed
from labctl.host.devices.affinity import apply_affinity
from labctl.host.devices.discovery import discover_filtered, reader_of, require_only
from labctl.host.devices.occupancy import card_state, require_free
from labctl.host.devices.seen import CardReader
from labctl.records.card_order import CardOrder, ComponentOrder
from labctl.records.devices import Card, CardState
from labctl.rundir import LegPaths

SETTLE_S = 10.0
LOOK_AGAIN_S = 0.5


def bind_to_card(order: ComponentOrder, clock: Clock) -> Card:
    """Bind this process to the order's card, write down which cards it then sees, and require that it is that one.

    Raises:
        LegFailed: it sees another card, or none, or several (WRONG_CARD), or one that somebody uses (HOST_BUSY).
        PreflightFailed: the vendor's tool gives no answer.
    """
    apply_affinity(order.card)
    discovery = discover_filtered(_reader(order), order.environment, order.devices, clock)
    write_once(LegPaths(Path(order.paths.leg)).discovery, discovery.canonical())
    return require_free(require_only(discovery, order.card), order.devices)


def card_afterwards(order: ComponentOrder, before: Card, clock: Clock) -> CardState | None:
    """The card after the worker, given time to settle; None where it cannot be looked at."""
    return _settled(order, before, order.environment, clock)


def rank_card_afterwards(order: CardOrder, before: Card, environment: dict[str, str], clock: Clock) -> CardState | None:
    """The card of a rank after the probe, given time to settle; None where it cannot be looked at."""
    apply_affinity(before)
    return _settled(order, before, order.environment | environment, clock)


def _settled(order: CardOrder, before: Card, environment: dict[str, str], clock: Clock) -> CardState | None:
    """A driver frees the memory of a process some time after it has ended."""
    deadline_ns = clock.monotonic_ns() + round(SETTLE_S * 1e9)
    state = _look(order, before, environment, clock)
    while state is not None and state.problems and clock.monotonic_ns() < deadline_ns:
        clock.sleep(LOOK_AGAIN_S)
        state = _look(order, before, environment, clock)
    return state


def _look(order: CardOrder, before: Card, environment: dict[str, str], clock: Clock) -> CardState | None:
    try:
        found = discover_filtered(_reader(order), environment, order.devices, clock)
    except PreflightFailed:
        return None
    return card_state(before, found.cards[0], order.devices) if len(found.cards) == 1 else None


def _reader(order: CardOrder) -> CardReader:
    return reader_of(order.selection, order.devices)
