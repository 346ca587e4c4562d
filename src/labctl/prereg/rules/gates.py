"""Rules for gates: each can be evaluated, each can fail, and none contradicts another."""

from collections.abc import Iterator
from decimal import Decimal
from typing import TypeVar

from labctl.prereg.field_types import MetricId
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.gate_kinds import CleanLog, ControlNear, ExactTokens, Gate, Pair, gate_id
from labctl.prereg.model import Preregistration
from labctl.prereg.places import TreePath
from labctl.prereg.rules.patterns import matches, pattern_findings
from labctl.prereg.rules.schedule import are_pairs

TOKENS_OF_A_WINDOW = 100
WINDOW_METRICS = frozenset(
    {
        MetricId.DECODE_RATE_CONVENTIONAL_1_100,
        MetricId.DECODE_RATE_LEGACY_100_1_100,
        MetricId.DECODE_RATE_CHUNKED_1_100,
    }
)
GateT = TypeVar("GateT", bound=Gate)


def gates_of(preregistration: Preregistration, kind: type[GateT]) -> Iterator[tuple[TreePath, GateT]]:
    """The gates of one kind, with their paths."""
    for index, gate in enumerate(preregistration.gates):
        if isinstance(gate, kind):
            yield ("gates", index), gate


def ids_are_unique(preregistration: Preregistration) -> Iterator[Finding]:
    """A verdict names gates by id."""
    ids = [gate_id(gate) for gate in preregistration.gates]
    for index, name in enumerate(ids):
        if name in ids[:index]:
            key = "id" if preregistration.gates[index].id else "kind"
            yield Finding(("gates", index, key), "gate ids that differ", f"{name} again", "give the gate its own `id`")


def patterns_are_sound(preregistration: Preregistration) -> Iterator[Finding]:
    """Log patterns compile and match their examples."""
    for path, gate in gates_of(preregistration, CleanLog):
        items = [(("deny", index), item.pattern, item.example) for index, item in enumerate(gate.deny)]
        items += [(("require", index), item.pattern, item.example) for index, item in enumerate(gate.require)]
        for place, pattern, example in items:
            yield from pattern_findings((*path, *place), ("pattern", "example"), (pattern, example))


def requirements_are_not_denied(preregistration: Preregistration) -> Iterator[Finding]:
    """A line that must be there is not a line that must not."""
    for path, gate in gates_of(preregistration, CleanLog):
        for index, wanted in enumerate(gate.require):
            for unwanted in gate.deny:
                if matches(unwanted.pattern, wanted.example):
                    where = (*path, "require", index, "example")
                    expected = f"a line that {unwanted.pattern!r} does not deny"
                    yield Finding(where, expected, repr(wanted.example), "drop one of the two patterns")


def pairs_exist(preregistration: Preregistration) -> Iterator[Finding]:
    """A pair gate compares each two neighbouring legs."""
    order = preregistration.schedule.order
    for path, _ in gates_of(preregistration, Pair):
        if not are_pairs(order):
            do = "order the legs in pairs, such as [A1, B1, B2, A2]"
            got = " ".join(order)
            yield Finding((*path, "kind"), "legs in pairs of one control and one candidate", got, do)


def others_to_compare_exist(preregistration: Preregistration) -> Iterator[Finding]:
    """A comparison of one leg with itself cannot fail."""
    if len(preregistration.schedule.order) > 1:
        return
    for index, gate in enumerate(preregistration.gates):
        is_own_teacher = isinstance(gate, ExactTokens) and preregistration.oracle == "first_control"
        if gate.kind == "cross_leg_exact" or is_own_teacher:
            path = ("gates", index, "kind")
            yield Finding(path, "another leg to compare with", "one leg", "add a leg, name a teacher, or drop the gate")


def windows_are_filled(preregistration: Preregistration) -> Iterator[Finding]:
    """A rate over the first 100 tokens needs 100 tokens."""
    used = [((*path, "metric"), gate.metric) for path, gate in gates_of(preregistration, Pair)]
    used += [((*path, "metric"), gate.metric) for path, gate in gates_of(preregistration, ControlNear) if gate.metric]
    if preregistration.decision is not None:
        used.append((("decision", "headline"), preregistration.decision.headline))
    asked = preregistration.workload.max_tokens
    if asked < TOKENS_OF_A_WINDOW and (windowed := [path for path, metric in used if metric in WINDOW_METRICS]):
        expected = f"at least {TOKENS_OF_A_WINDOW} tokens for the metric of {'.'.join(map(str, windowed[0]))}"
        yield Finding(("workload", "max_tokens"), expected, str(asked), "ask for more tokens, or use another metric")


def headline_is_gated(preregistration: Preregistration) -> Iterator[Finding]:
    """The number that counts is one that a pair gate looks at."""
    metrics = [gate.metric for _, gate in gates_of(preregistration, Pair)]
    decision = preregistration.decision
    if decision is not None and metrics and decision.headline not in metrics:
        expected = f"a metric that a pair gate compares ({', '.join(metrics)})"
        yield Finding(("decision", "headline"), expected, decision.headline, "use one metric for both")


def reference_is_a_speed(preregistration: Preregistration) -> Iterator[Finding]:
    """A reference speed is positive, and its distance has a metric to be measured in."""
    for path, gate in gates_of(preregistration, ControlNear):
        for key in ("reference", "within_percent"):
            if Decimal(value := getattr(gate, key)) <= 0:
                yield Finding((*path, key), "more than 0", value, "correct it")
        if preregistration.decision is None and gate.metric is None:
            do = "add `decision`, or give the gate its `metric`"
            yield Finding((*path, "kind"), "a decision that names the headline", "none", do)


def record_has_a_floor(preregistration: Preregistration) -> Iterator[Finding]:
    """A record and the floor over it come together, and neither is below nothing."""
    decision = preregistration.decision
    if decision is None:
        return
    record, floor = decision.record_to_beat, decision.floor_over_record_percent
    if (record is None) != (floor is None):
        missing = "record_to_beat" if record is None else "floor_over_record_percent"
        present = "floor_over_record_percent" if record is None else "record_to_beat"
        path = ("decision", present)
        yield Finding(path, f"`{missing}` beside it", "one of the two", f"add `{missing}`", anchor=Anchor.KEY)
    if record is not None and Decimal(record) <= 0:
        yield Finding(("decision", "record_to_beat"), "more than 0", record, "correct it")
    if floor is not None and Decimal(floor) < 0:
        yield Finding(("decision", "floor_over_record_percent"), "0 or more", floor, "correct it")


GATE_RULES = (
    ids_are_unique,
    patterns_are_sound,
    requirements_are_not_denied,
    pairs_exist,
    others_to_compare_exist,
    windows_are_filled,
    headline_is_gated,
    reference_is_a_speed,
    record_has_a_floor,
)
