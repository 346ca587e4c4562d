"""Finding cards: all of them before anything hides any, and in a leg exactly the one that was selected."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import LegFailed, PreflightFailed, Problem
from labctl.host.devices.affinity import filters_in_force
from labctl.host.devices.cpus import CpuReader
from labctl.host.devices.intel import IntelReader
from labctl.host.devices.nvidia import NvidiaReader
from labctl.host.devices.occupancy import with_holders
from labctl.host.devices.seen import CardReader, Seen
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.host_profile import Devices
from labctl.records.devices import Card, Discovery


def reader_of(cards: Cards, devices: Devices) -> CardReader:
    """The way in which a vendor's cards are told about."""
    match cards.vendor:
        case CardVendor.CPU:
            return CpuReader(cards.count, () if isinstance(cards.identities, str) else cards.identities)
        case CardVendor.NVIDIA:
            return NvidiaReader(devices.timeout_s)
        case CardVendor.INTEL:
            return IntelReader(Path(devices.xpu_smi), devices.timeout_s)
        case _:
            assert_never(cards.vendor)


def discover(reader: CardReader, devices: Devices, clock: Clock) -> Discovery:
    """Every card of the machine, before any affinity is set.

    Raises:
        PreflightFailed: something hides cards from this process already, or the vendor's tool gives no answer.
    """
    hidden = filters_in_force(reader.vendor, os.environ)
    if hidden:
        raise PreflightFailed(_hidden(name, value) for name, value in hidden.items())
    return _recorded(reader.vendor, reader.every_card(), {}, devices, clock)


def discover_filtered(reader: CardReader, environment: Mapping[str, str], devices: Devices, clock: Clock) -> Discovery:
    """The cards that a child with this environment would see, for a leg after `apply_affinity`.

    Raises:
        PreflightFailed: the vendor's tool gives no answer.
    """
    filters = filters_in_force(reader.vendor, environment)
    return _recorded(reader.vendor, reader.visible_cards(environment), filters, devices, clock)


def select(discovery: Discovery, cards: Cards) -> tuple[Card, ...]:
    """The cards of a campaign, in the order of its legs.

    Raises:
        PreflightFailed: with every card that is missing, and every problem of the discovery (WRONG_CARD).
    """
    if isinstance(cards.identities, str):
        wanted = tuple(card.identity for card in discovery.cards)[: cards.count]
    else:
        wanted = cards.identities
    by_identity = {card.identity: card for card in discovery.cards}
    problems = [*discovery_problems(discovery), *_missing(discovery, cards, wanted)]
    if problems:
        raise PreflightFailed(problems)
    return tuple(by_identity[identity] for identity in wanted)


def require_only(filtered: Discovery, selected: Card) -> Card:
    """The one card that a leg's process sees, which is the selected one by everything but its number.

    Raises:
        LegFailed: it sees another card, or none, or several (WRONG_CARD).
    """
    problems = [*discovery_problems(filtered), *_otherwise(filtered, selected)]
    if problems:
        raise LegFailed(problems)
    return filtered.cards[0]


def discovery_problems(discovery: Discovery) -> tuple[Problem, ...]:
    """What a discovery itself found wrong (WRONG_CARD)."""
    return tuple(_told(text) for text in discovery.problems)


def _recorded(vendor: CardVendor, seen: Seen, filters: dict[str, str], devices: Devices, clock: Clock) -> Discovery:
    return Discovery(
        vendor=vendor,
        filtered_by=filters,
        cards=with_holders(seen.cards, devices.tolerated_processes),
        tool=seen.tool,
        answers=seen.answers,
        remarks=seen.remarks,
        problems=seen.problems,
        wall_ns=clock.realtime_ns(),
        mono_ns=clock.monotonic_ns(),
    )


def _hidden(name: str, value: str) -> Problem:
    do = "start labctl where nothing hides cards; each leg gets its own affinity"
    return Problem(Code.WRONG_CARD, f"affinity: {name}", "no affinity before discovery", repr(value), do)


def _told(text: str) -> Problem:
    where, _, got = text.partition(": ")
    do = "repair the machine, or select other cards"
    return Problem(Code.WRONG_CARD, f"discovery: {where}", "a card like others", got or where, do)


def _missing(discovery: Discovery, cards: Cards, wanted: tuple[str, ...]) -> Iterator[Problem]:
    there = [card.identity for card in discovery.cards]
    found = "; ".join((", ".join(there) or "none", *discovery.remarks))
    do = "see `labctl host check`, and correct `cards` in the campaign"
    if len(wanted) < cards.count:
        yield Problem(Code.WRONG_CARD, "cards", f"{cards.count} {cards.vendor.value} cards", found, do)
    for identity in wanted:
        if there.count(identity) != 1:
            yield Problem(Code.WRONG_CARD, f"cards: {identity}", "this card, once", found, do)


def _otherwise(filtered: Discovery, selected: Card) -> Iterator[Problem]:
    do = "look at discovery.json of this leg and devices.json of the run; nothing was run on a card"
    if len(filtered.cards) != 1:
        found = ", ".join(card.identity for card in filtered.cards) or "none"
        yield Problem(Code.WRONG_CARD, "filtered discovery", f"{selected.identity} alone", found, do)
        return
    card = filtered.cards[0]
    for field, expected, got in selected.same_card_conflicts(card):
        yield Problem(Code.WRONG_CARD, f"filtered discovery: {field}", expected, got, do)
    if card.index != 0:
        yield Problem(Code.WRONG_CARD, "filtered discovery: index", "0, as a card seen alone has", str(card.index), do)
