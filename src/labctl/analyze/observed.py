"""What the starts were really started with: how the arms differed in it, and whether equal starts were equal."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.gates.identity import generic_environment
from labctl.analyze.start_values import environment_template, start_values
from labctl.analyze.timing import one_off_gap
from labctl.prereg.arms import arm_argv, substitute_back
from labctl.prereg.model import Arm

NS_PER_MS = 1_000_000
ALIKE = "none: the arms were started alike"


class ObservedStart(NamedTuple):
    """Arguments and environment of a start's first process, with placeholders for what differs from start to start."""

    leg: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    binaries: str | None
    """The folder of compiled files, where the arms differ in it."""


def observed_differences(evidence: RunEvidence) -> tuple[str, ...] | None:
    """How the arms differed in what was observed, one line each; None where no start of each arm was observed."""
    arms = {arm: [start for leg in evidence.arm(arm) if (start := _observed(evidence, leg))] for arm in Arm}
    lines = [
        f"{other.leg} against {starts[0].leg}, of one arm: {line}"
        for starts in arms.values()
        for other in starts[1:]
        for line in _differences(starts[0], other)
    ]
    if not arms[Arm.CONTROL] or not arms[Arm.CANDIDATE]:
        return None
    between = _differences(arms[Arm.CONTROL][0], arms[Arm.CANDIDATE][0])
    return (*(between or [ALIKE]), *lines)


def one_off_lines(evidence: RunEvidence) -> list[str]:
    """Every gap that is like no other of its row, by its place."""
    found = ((leg.name, row.row, one_off_gap(row)) for leg in evidence.legs for row in leg.rows)
    return [
        f"{leg} row {row} stood still for {gap.ns // NS_PER_MS} ms after {gap.after_tokens} tokens, once; its speed is "
        "not that of a steady row"
        for leg, row, gap in found
        if gap is not None
    ]


def _observed(evidence: RunEvidence, leg: LegEvidence) -> ObservedStart | None:
    if leg.order is None or leg.process is None:
        return None
    packet, root = evidence.packet, leg.process.root
    values = start_values(packet, leg.order)
    argv = substitute_back(root.argv, arm_argv(packet.preregistration, leg.arm), values)
    template = environment_template(packet, leg.order, leg.arm)
    environment = generic_environment(evidence, leg.order, root.environment, template)
    return ObservedStart(leg.name, argv, environment, values.binaries)


def _differences(one: ObservedStart, other: ObservedStart) -> list[str]:
    lines = [
        f"arguments: {_shown(one.argv[i1:i2])} in {one.leg}, {_shown(other.argv[j1:j2])} in {other.leg}"
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, one.argv, other.argv, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    if one.binaries != other.binaries:
        lines.append(f"compiled files from {one.binaries} in {one.leg}, from {other.binaries} in {other.leg}")
    for name in sorted({*one.environment, *other.environment}):
        sides = one.environment.get(name), other.environment.get(name)
        if sides[0] != sides[1]:
            told = ["absent" if side is None else repr(side) for side in sides]
            lines.append(f"environment {name}: {told[0]} in {one.leg}, {told[1]} in {other.leg}")
    return lines


def _shown(parts: Sequence[str]) -> str:
    return " ".join(map(repr, parts)) if parts else "nothing"
