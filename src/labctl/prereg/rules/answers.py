"""Rules for campaigns whose arms may answer differently: each arm must still equal itself."""

from collections.abc import Iterator

from labctl.prereg.answer_gates import ExactWithinArms
from labctl.prereg.finding import Finding
from labctl.prereg.model import Arm, CampaignClass, Preregistration
from labctl.prereg.rules.gates import gates_of

STARTS_TO_COMPARE = 2


def comparison_is_exact_within_arms(preregistration: Preregistration) -> Iterator[Finding]:
    """A difference between arms that are not each the same twice is a difference between starts."""
    arms = {Arm.of_leg(leg) for leg in preregistration.schedule.order}
    is_comparison = preregistration.campaign_class is CampaignClass.COMPARISON and len(arms) > 1
    if is_comparison and next(gates_of(preregistration, ExactWithinArms), None) is None:
        do = "add {kind: exact_within_arms}"
        yield Finding(("gates",), "a gate of kind exact_within_arms for class comparison", "none", do)


def arms_have_starts_to_compare(preregistration: Preregistration) -> Iterator[Finding]:
    """A start cannot differ from itself."""
    order = preregistration.schedule.order
    counts = [sum(Arm.of_leg(leg) is arm for leg in order) for arm in Arm]
    for path, _ in gates_of(preregistration, ExactWithinArms):
        if any(0 < count < STARTS_TO_COMPARE for count in counts):
            do = "order two starts of each arm, such as [A1, B1, B2, A2]"
            yield Finding((*path, "kind"), "two starts of each arm", " ".join(order), do)


ANSWER_RULES = (comparison_is_exact_within_arms, arms_have_starts_to_compare)
