"""Rules for the gates on what starts printed, counted and left: each can be evaluated, and each can fail."""

import re
from collections.abc import Iterator
from decimal import Decimal

from labctl.prereg.field_types import GroupValues
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.gate_kinds import CleanLog
from labctl.prereg.model import Arm, Preregistration
from labctl.prereg.places import TreePath
from labctl.prereg.rules.gates import gates_of
from labctl.prereg.start_gates import Acceptance, MovingDifference, Roofline, SteadyHost, SurvivalShape
from labctl.prereg.treatment_kinds import LogProof

RANK = "rank"
Named = tuple[str, GroupValues | None]


def limits_can_be_met_and_missed(preregistration: Preregistration) -> Iterator[Finding]:
    """A floor of nothing and a roof of nothing say nothing."""
    for path, roofline in gates_of(preregistration, Roofline):
        for key in ("bytes_per_second", "bytes_per_token", "max_percent"):
            yield from _above_nothing((*path, key), getattr(roofline, key))
    for path, acceptance in gates_of(preregistration, Acceptance):
        yield from _above_nothing((*path, "min_percent"), acceptance.min_percent)
        if Decimal(acceptance.min_percent) > 100:  # noqa: PLR2004 (all of them)
            yield Finding((*path, "min_percent"), "100 at most", acceptance.min_percent, "correct it")
    for path, shape in gates_of(preregistration, SurvivalShape):
        if not 0 < Decimal(shape.max_last_over_first) < 1:
            got = shape.max_last_over_first
            yield Finding((*path, "max_last_over_first"), "more than 0 and less than 1", got, "correct it")


def a_steady_host_is_bounded(preregistration: Preregistration) -> Iterator[Finding]:
    """A gate without a bound holds of every host."""
    for path, gate in gates_of(preregistration, SteadyHost):
        if gate.max_load is not None:
            yield from _above_nothing((*path, "max_load"), gate.max_load)
        if (gate.max_load, gate.min_memory_available_bytes, gate.min_cpu_mhz) == (None, None, None):
            do = "add max_load, min_memory_available_bytes or min_cpu_mhz"
            yield Finding((*path, "kind"), "a bound", "none", do)


def equal_starts_exist(preregistration: Preregistration) -> Iterator[Finding]:
    """What moves between equal starts needs two of them."""
    order = preregistration.schedule.order
    most = max(sum(Arm.of_leg(leg) is arm for leg in order) for arm in Arm)
    for path, _ in gates_of(preregistration, MovingDifference):
        if most < 2:  # noqa: PLR2004 (two starts)
            got = " ".join(order)
            yield Finding((*path, "kind"), "an arm with two starts", got, "add a start, or drop the gate")


def groups_are_named(preregistration: Preregistration) -> Iterator[Finding]:
    """What is asked of named groups is asked of groups that the expression names."""
    for path, gate in gates_of(preregistration, CleanLog):
        for index, item in enumerate(gate.require):
            own = (("groups", item.groups), ("control", item.control), ("candidate", item.candidate))
            yield from _unnamed((*path, "require", index), item.pattern, item.ranks, own)
    treatment = preregistration.treatment
    if treatment is not None and isinstance(treatment.proof, LogProof):
        proof = treatment.proof
        sides = (("control", proof.control), ("candidate", proof.candidate))
        values = tuple((name, side) for name, side in sides if isinstance(side, dict))
        yield from _unnamed(("treatment", "proof"), proof.log, proof.ranks, values)


def _unnamed(path: TreePath, pattern: str, ranks: int | None, values: tuple[Named, ...]) -> Iterator[Finding]:
    try:
        known = re.compile(pattern.encode()).groupindex
    except re.error:
        return  # said already
    shown = ", ".join(known) or "none"
    if ranks is not None and RANK not in known:
        yield Finding((*path, "ranks"), "an expression that names the group `rank`", shown, "write `(?P<rank>…)`")
    for key, wanted in values:
        for name in wanted or ():
            if name not in known:
                expected = f"one of the groups that the expression names ({shown})"
                yield Finding((*path, key, name), expected, name, "name the group", anchor=Anchor.KEY)


def _above_nothing(path: TreePath, value: str) -> Iterator[Finding]:
    if Decimal(value) <= 0:
        yield Finding(path, "more than 0", value, "correct it")


START_GATE_RULES = (limits_can_be_met_and_missed, a_steady_host_is_bounded, equal_starts_exist, groups_are_named)
