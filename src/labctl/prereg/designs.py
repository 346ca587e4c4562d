"""Designs: in which order the starts of two arms run, how a sealed coin mirrors it, and what it cannot separate."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any

from labctl.digest import sha256_hex
from labctl.prereg.words import nearest

CONTROL, CANDIDATE = "A", "B"
SWAPPED = {CONTROL: CANDIDATE, CANDIDATE: CONTROL}
FEW_STARTS_OF_AN_ARM = 4
DRIFTS = {1: "linear", 2: "quadratic"}
COIN = "a sealed coin chose between two mirrors"


class Design(StrEnum):
    """Orders that have a name; each is balanced against a linear drift, the longer ones against a quadratic one too."""

    ABBA = "abba"
    ABBABAAB = "abbabaab"
    ABABBBAAABAB = "ababbbaaabab"


class Mirror(StrEnum):
    """Who decides between an order and the same order with the arms swapped."""

    SEALED_COIN = "sealed_coin"


def order_of(design: Design) -> tuple[str, ...]:
    """The legs of a design, numbered within each arm."""
    seen = {CONTROL: 0, CANDIDATE: 0}
    legs = []
    for arm in design.value.upper():
        seen[arm] += 1
        legs.append(f"{arm}{seen[arm]}")
    return tuple(legs)


def mirrored(order: Sequence[str]) -> tuple[str, ...]:
    """The same order with the arms swapped."""
    return tuple(SWAPPED[leg[0]] + leg[1:] for leg in order)


def drawn_order(order: tuple[str, ...], mirror: Mirror | None, nonce: str) -> tuple[str, ...]:
    """The order that runs: as registered, or its mirror where a coin is registered and the marker's nonce says so.

    The nonce is 128 random bits that come into being as the packet is consumed, so nobody can know the order before,
    and anybody can compute it afterwards: the mirror runs iff the last bit of SHA-256 of `NONCE:order` is 1.
    """
    if mirror is None:
        return order
    is_mirror = int(sha256_hex(f"{nonce}:order".encode())[-1], 16) & 1
    return mirrored(order) if is_mirror else order


def with_order(tree: Any) -> Any:  # noqa: ANN401 (a campaign file's tree, before it has a type)
    """A campaign file's tree with the order written out where a design is named; a misspelt one is guessed."""
    schedule = tree.get("schedule") if isinstance(tree, dict) else None
    if not isinstance(schedule, dict) or "order" in schedule:
        return tree
    named = schedule.get("design")
    if not isinstance(named, str):
        return tree
    meant = named if named in set(Design) else nearest(named, list(Design))
    return {**tree, "schedule": {**schedule, "order": list(order_of(Design(meant)))}} if meant else tree


def is_balanced(order: Sequence[str], degree: int) -> bool:
    """Whether a drift of this degree in time shifts the means of both arms alike."""
    middle = Fraction(len(order) - 1, 2)
    means = []
    for arm in (CONTROL, CANDIDATE):
        places = [place for place, leg in enumerate(order) if leg[0] == arm]
        means.append(sum(((place - middle) ** degree for place in places), Fraction(0)) / len(places))
    return means[0] == means[1]


def design_limits(order: Sequence[str], mirror: Mirror | None = None) -> tuple[str, ...]:
    """What an order cannot separate from the treatment, whatever is measured, in one line; none for one arm."""
    counts = [sum(leg[0] == arm for leg in order) for arm in (CONTROL, CANDIDATE)]
    if not all(counts):
        return ()
    said = [*_drift_limits(order), *_start_limits(counts), *_carry_over(order), *_coin(mirror)]
    return (f"{len(order)} starts, {' '.join(order)}: {'; '.join(said)}",) if said else ()


def _drift_limits(order: Sequence[str]) -> Iterator[str]:
    for degree, name in DRIFTS.items():
        if not is_balanced(order, degree):
            yield f"a drift that is {name} in time cannot be told from the treatment"


def _start_limits(counts: list[int]) -> Iterator[str]:
    if min(counts) < FEW_STARTS_OF_AN_ARM:
        yield f"starts alone cannot give a permutation p below 1/{comb(sum(counts), counts[0])}"
        yield "the spread between starts is hardly known"


def _carry_over(order: Sequence[str]) -> Iterator[str]:
    there = {earlier[0] + later[0] for earlier, later in pairwise(order)}
    if absent := sorted({"AA", "AB", "BA", "BB"} - there):
        yield f"no start follows another as {', '.join(absent)}, so what one leaves behind for the next is unknown"


def _coin(mirror: Mirror | None) -> Iterator[str]:
    if mirror is not None:
        yield f"{COIN}, a draw that alone gives no p below 1/2"
