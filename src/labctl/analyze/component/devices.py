"""Gate `devices`: every card was seen before any affinity, and each leg saw exactly its own, by its stable names."""

import re
from collections.abc import Iterator

from labctl.analyze.card_evidence import CardEvidence
from labctl.analyze.component.card_leg import CardLeg
from labctl.analyze.gates.findings import Findings
from labctl.prereg.cards import Cards, CardVendor
from labctl.records.component import DeviceSeen
from labctl.records.devices import Card, CardState, Discovery, identity_from_torch

TORCH_DEVICES = {CardVendor.CPU: "cpu", CardVendor.NVIDIA: "cuda:0", CardVendor.INTEL: "xpu:0"}
CPUS = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def judge_discovery(findings: Findings, cards: Cards, discovery: Discovery | None) -> tuple[Card, ...]:
    """Judge the discovery before any affinity; gives the registered cards in the order of the legs."""
    if discovery is None:
        findings.lacks("run: no discovery of the cards before any affinity")
        return ()
    findings.equal("vendor of the discovery", "run", cards.vendor, discovery.vendor)
    findings.equal("what hid cards from the discovery", "run", {}, discovery.filtered_by)
    findings.equal("problems of the discovery", "run", (), discovery.problems)
    there = {card.identity: card for card in discovery.cards}
    findings.equal("cards with an identity of their own", "run", len(discovery.cards), len(there))
    wanted = tuple(there)[: cards.count] if isinstance(cards.identities, str) else cards.identities
    missing = [identity for identity in wanted if identity not in there]
    findings.equal("cards that are not there", "run", (cards.count, []), (len(wanted), missing))
    return tuple(there[identity] for identity in wanted if identity in there)


def judge_devices(findings: Findings, evidence: CardEvidence[CardLeg], leg: CardLeg, selected: Card) -> None:
    """Judge what one leg and its worker saw."""
    where = leg.name
    if leg.order is None or leg.discovery is None or leg.pre_import is None or leg.component is None:
        findings.lacks(f"{where}: what the leg or its worker saw of cards")
        return
    findings.equal("card of the order", where, (selected, leg.index - 1), (leg.order.card, leg.order.card_index))
    findings.equal("discovery that the order names", where, evidence.discovery_sha256, leg.order.discovery_sha256)
    findings.equal(
        "discovery that the worker was sealed with", where, leg.discovery_sha256, leg.pre_import.discovery_sha256
    )
    judge_filtered(findings, where, leg.discovery, selected)
    if leg.postflight is not None and leg.postflight.card is not None:
        judge_card_state(findings, where, leg.postflight.card, leg.discovery)
    elif leg.postflight is not None:
        findings.equal("the card after the leg", where, "a look at it", "none")
    if leg.component.device is None:
        findings.lacks(f"{where}: the card as torch shows it")
        return
    _judge_torch(findings, leg, leg.component.device, selected)


def judge_filtered(findings: Findings, where: str, filtered: Discovery, selected: Card) -> None:
    """Judge that exactly the selected card was visible, by its stable names; alone it has the number 0."""
    findings.equal("vendor of the leg's discovery", where, selected.vendor, filtered.vendor)
    findings.equal("problems of the leg's discovery", where, (), filtered.problems)
    findings.equal("cards that the leg saw", where, 1, len(filtered.cards))
    for card in filtered.cards:
        for field, expected, got in selected.same_card_conflicts(card):
            findings.equal(f"{field} of the card that the leg saw", where, expected, got)
        findings.equal("number of the only visible card", where, 0, card.index)


def judge_card_state(findings: Findings, where: str, state: CardState, filtered: Discovery) -> None:
    """Judge that the card that was looked at afterwards is the one that the leg saw, and as it was."""
    findings.equal("problems of the card after the leg", where, (), state.problems)
    findings.equal("the card before the leg", where, filtered.cards, (state.before,))
    findings.equal(
        "stable fields that are others afterwards", where, [], [*state.before.same_card_conflicts(state.after)]
    )
    findings.equal("number of the card afterwards", where, state.before.index, state.after.index)
    known = {process.pid for process in state.before.processes}
    clients = [one.pid for one in state.after.processes if one.role == "client" and one.pid not in known]
    findings.equal("processes that came to the card and stayed", where, [], clients)


def _judge_torch(findings: Findings, leg: CardLeg, seen: DeviceSeen, selected: Card) -> None:
    where = leg.name
    findings.equal("device of torch", where, TORCH_DEVICES[selected.vendor], seen.device)
    findings.equal("devices that torch saw", where, 1, seen.visible)
    if selected.vendor is CardVendor.CPU:
        cpus = cpus_of(selected.bus_id)
        told = [leg.process.cpus if leg.process is not None else None]
        told += [leg.pre_import.cpus if leg.pre_import is not None else None, seen.cpus]
        findings.equal("CPUs of the worker, from outside, before and after importing torch", where, [cpus] * 3, told)
    elif seen.uuid is not None:
        findings.equal(
            "identity as torch shows it", where, selected.identity, torch_identity(selected.vendor, seen.uuid)
        )


def torch_identity(vendor: CardVendor, uuid: str) -> str:
    """The identity behind a UUID of torch, or what torch wrote where it is none."""
    try:
        return identity_from_torch(vendor, uuid)
    except ValueError:
        return uuid


def cpus_of(text: str) -> tuple[int, ...]:
    """The CPUs of a set such as `0-1,4`."""
    return tuple(_cpus(text))


def _cpus(text: str) -> Iterator[int]:
    for first, last in CPUS.findall(text):
        yield from range(int(first), int(last or first) + 1)
