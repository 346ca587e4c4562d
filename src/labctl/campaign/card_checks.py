"""Whether a campaign's cards are there and free: what preflight looks at before any affinity is set."""

from collections.abc import Iterator
from typing import assert_never

from labctl.campaign.look import Look
from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import PreflightFailed, Problem
from labctl.host.devices.discovery import discover, select
from labctl.host.devices.occupancy import busy_problems
from labctl.host.devices.seen import CardReader
from labctl.prereg.any_campaign import AnyPreregistration
from labctl.prereg.cards import Cards
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.host_profile import Devices, HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.probe_model import ProbePreregistration


def watched_cards(preregistration: AnyPreregistration, host: HostProfile) -> Cards | None:
    """The cards that must be free: those of the campaign, or for servers those that the host profile names."""
    match preregistration:
        case Preregistration():
            return host.devices.idle_cards if host.devices else None
        case ComponentPreregistration() | ProbePreregistration():
            return preregistration.cards
        case _:
            assert_never(preregistration)


def card_looks(reader: CardReader, cards: Cards, devices: Devices, clock: Clock) -> Iterator[Look]:
    """Every selected card, there and used by nobody; or what is wrong."""
    try:
        selected = select(discover(reader, devices, clock), cards)
    except PreflightFailed as error:
        yield from (card_miss("cards", problem) for problem in error.problems)
        return
    busy = busy_problems(selected, devices)
    yield from (card_miss("cards.free", problem) for problem in busy)
    if not busy:
        found = ", ".join(card.identity for card in selected)
        yield Look("cards", Code.WRONG_CARD, f"{cards.count} free {cards.vendor.value} cards", found, is_met=True)


def card_miss(name: str, problem: Problem) -> Look:
    """A problem of a card, as a look."""
    where = f"{name} {problem.where.partition(': ')[2] or problem.where}"
    return Look(where, problem.code, problem.expected, problem.got, is_met=False, do=problem.do)
