"""Rules for the order of legs."""

from collections.abc import Iterator

from labctl.prereg.designs import order_of
from labctl.prereg.field_types import LegName
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.model import Arm, CampaignClass, Preregistration
from labctl.prereg.rules.arms import arms_of

_ORDER = ("schedule", "order")


def pairs_of(order: tuple[LegName, ...]) -> list[tuple[LegName, ...]]:
    """Neighbouring legs, two by two; an odd last leg is a pair of one."""
    return [order[start : start + 2] for start in range(0, len(order), 2)]


def are_pairs(order: tuple[LegName, ...]) -> bool:
    """Whether each two neighbours are one control and one candidate."""
    return all({Arm.of_leg(leg) for leg in pair} == {Arm.CONTROL, Arm.CANDIDATE} for pair in pairs_of(order))


def legs_are_unique(preregistration: Preregistration) -> Iterator[Finding]:
    """Each leg runs once."""
    order = preregistration.schedule.order
    for index, leg in enumerate(order):
        if leg in order[:index]:
            yield Finding((*_ORDER, index), "each leg once", f"{leg} again", "number the legs of an arm 1, 2, …")


def legs_are_numbered(preregistration: Preregistration) -> Iterator[Finding]:
    """The legs of an arm are numbered in the order in which they run."""
    order = preregistration.schedule.order
    if len(set(order)) < len(order):
        return  # `legs_are_unique` speaks of it
    seen = dict.fromkeys(Arm, 0)
    for index, leg in enumerate(order):
        arm = Arm.of_leg(leg)
        seen[arm] += 1
        if leg != (wanted := f"{arm.value}{seen[arm]}"):
            yield Finding((*_ORDER, index), wanted, leg, f"write {wanted}")
            return


def candidate_has_a_control(preregistration: Preregistration) -> Iterator[Finding]:
    """A candidate alone is compared with nothing."""
    if Arm.CONTROL not in arms_of(preregistration):
        yield Finding(_ORDER, "a control leg", "candidates alone", "add A1")


def stop_has_a_first_pair(preregistration: Preregistration) -> Iterator[Finding]:
    """Stopping after the first pair needs a pair to judge and a pair to save."""
    schedule = preregistration.schedule
    if not schedule.stop_after_first_pair:
        return
    path = ("schedule", "stop_after_first_pair")
    if not are_pairs(schedule.order[:2]):
        got = " ".join(schedule.order[:2])
        yield Finding(path, "a first pair of one control and one candidate", got, "reorder the legs, or write false")
    elif len(pairs_of(schedule.order)) == 1:
        yield Finding(path, "a second pair that the stop can save", "one pair", "add a pair, or write false")


def design_is_its_order(preregistration: Preregistration) -> Iterator[Finding]:
    """An order beside a design is that design's, which the loader writes out where it is left away."""
    schedule = preregistration.schedule
    if schedule.design is not None and schedule.order != (wanted := order_of(schedule.design)):
        expected = f"the order of {schedule.design}, {' '.join(wanted)}"
        yield Finding(_ORDER, expected, " ".join(schedule.order), "remove `order`, or the design")


def mirror_has_two_sides(preregistration: Preregistration) -> Iterator[Finding]:
    """A coin between an order and its mirror is fair only where both give each arm as many starts."""
    schedule = preregistration.schedule
    counts = [sum(Arm.of_leg(leg) is arm for leg in schedule.order) for arm in Arm]
    if schedule.mirror is not None and counts[0] != counts[1]:
        got = f"{counts[0]} of A and {counts[1]} of B"
        yield Finding(("schedule", "mirror"), "as many starts of A as of B", got, "balance the order, or remove it")


def class_fits_the_arms(preregistration: Preregistration) -> Iterator[Finding]:
    """Calibration runs one service, under one label or two; a comparison and a record compare two arms."""
    arms, path = len(arms_of(preregistration)), ("class",)
    match preregistration.campaign_class:
        case CampaignClass.CALIBRATION if arms > 1 and preregistration.treatment is not None:
            do = "order control legs alone, such as [A1, A2], or remove `treatment`"
            yield Finding(path, "one arm for a calibration, or two that do not differ", "two", do)
        case CampaignClass.COMPARISON | CampaignClass.RECORD if arms == 1:
            got = f"one for a {preregistration.campaign_class}"
            yield Finding(path, "two arms", got, "add candidate legs and a treatment, or choose another class")
        case _:
            return


def decision_iff_both_arms(preregistration: Preregistration) -> Iterator[Finding]:
    """A decision is needed exactly where there is something to decide between."""
    has_both = len(arms_of(preregistration)) > 1
    is_calibration = preregistration.campaign_class is CampaignClass.CALIBRATION
    if has_both and preregistration.decision is None and not is_calibration:
        yield Finding(_ORDER, "a decision between the arms", "none", "add `decision`")
    if not has_both and preregistration.decision is not None:
        do = "add the other arm to the order, or remove `decision`"
        yield Finding(("decision",), "no decision, as there is one arm", "a decision", do, anchor=Anchor.KEY)


SCHEDULE_RULES = (
    legs_are_unique,
    legs_are_numbered,
    candidate_has_a_control,
    stop_has_a_first_pair,
    design_is_its_order,
    mirror_has_two_sides,
    class_fits_the_arms,
    decision_iff_both_arms,
)
