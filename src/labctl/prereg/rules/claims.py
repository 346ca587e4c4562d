"""Rules for what a campaign may claim: expectation, reviews, power, and everything that class record needs."""

from collections.abc import Iterator
from decimal import Decimal

from labctl.prereg.any_campaign import AnyPreregistration
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.gate_kinds import CleanLog
from labctl.prereg.model import Arm, CampaignClass, Preregistration, Signatures
from labctl.prereg.rules.gates import gates_of

REVIEWS_OF_A_RECORD = 2
GATES_OF_A_RECORD = (
    *("exact_tokens", "cross_leg_exact", "cold", "accounting", "clean_log", "pair"),
    *("drift", "consistency", "separation", "effect"),
)
_CLASS = ("class",)


def expectation_is_a_range(preregistration: Preregistration) -> Iterator[Finding]:
    """The lower bound comes first."""
    if preregistration.expectation is None:
        return
    lower, upper = preregistration.expectation.effect_percent
    if Decimal(lower) > Decimal(upper):
        path = ("expectation", "effect_percent")
        yield Finding(path, "the lower bound first", f"{lower} before {upper}", "swap them")


def unsigned_is_exploratory(preregistration: AnyPreregistration) -> Iterator[Finding]:
    """Unsigned approvals prove no person; they do for exploration and calibration."""
    free = {CampaignClass.EXPLORATORY, CampaignClass.CALIBRATION}
    is_unsigned = preregistration.reviews.signatures is Signatures.NONE
    if is_unsigned and preregistration.campaign_class not in free:
        got = f"none for class {preregistration.campaign_class}"
        yield Finding(("reviews", "signatures"), "ssh", got, "write ssh, or choose class exploratory")


def signatures_have_signers(preregistration: AnyPreregistration) -> Iterator[Finding]:
    """A signature is held against a list of keys."""
    reviews = preregistration.reviews
    if reviews.signatures is Signatures.SSH and reviews.allowed_signers is None:
        path = ("reviews", "signatures")
        yield Finding(path, "`allowed_signers` beside ssh signatures", "none", "name the allowed-signers file")
    if reviews.signatures is Signatures.NONE and reviews.allowed_signers is not None:
        path = ("reviews", "allowed_signers")
        do = "write `signatures: ssh`, or remove the file"
        yield Finding(path, "signatures that need it", "signatures: none", do, anchor=Anchor.KEY)


def power_is_a_chance(preregistration: Preregistration) -> Iterator[Finding]:
    """Error rate and power lie between 0 and 1; the planned effect is a gain."""
    power = preregistration.power
    if power is None:
        return
    for key in ("alpha", "power"):
        if not 0 < Decimal(value := getattr(power, key)) < 1:
            yield Finding(("power", key), "between 0 and 1", value, 'write a share such as "0.05"')
    if Decimal(power.planned_effect_percent) <= 0:
        path = ("power", "planned_effect_percent")
        yield Finding(path, "more than 0", power.planned_effect_percent, "plan for a gain")


def waiver_is_for_records(preregistration: AnyPreregistration) -> Iterator[Finding]:
    """Only class record needs a rehearsal, so only it can waive one."""
    is_record = preregistration.campaign_class is CampaignClass.RECORD
    if preregistration.rehearsal_waived is not None and not is_record:
        path = ("rehearsal_waived",)
        got = f"class {preregistration.campaign_class}"
        yield Finding(path, "class record, which alone needs a rehearsal", got, "remove it", anchor=Anchor.KEY)


def record_has_its_numbers(preregistration: Preregistration) -> Iterator[Finding]:
    """A record says in advance what it beats, by how much, and that it could have seen it."""
    if preregistration.campaign_class is not CampaignClass.RECORD:
        return
    decision = preregistration.decision
    if decision is not None and decision.record_to_beat is None and decision.floor_over_record_percent is None:
        expected = "`record_to_beat` and `floor_over_record_percent` for class record"
        yield Finding(("decision",), expected, "neither", "add both")
    if preregistration.power is None:
        yield Finding(_CLASS, "`power` for class record", "none", "add `power`")


def record_has_its_gates(preregistration: Preregistration) -> Iterator[Finding]:
    """A record is exact, cold, accounted for, clean, faster in pairs, and faster than its own starts vary."""
    if preregistration.campaign_class is not CampaignClass.RECORD:
        return
    present = {gate.kind for gate in preregistration.gates}
    if missing := [kind for kind in GATES_OF_A_RECORD if kind not in present]:
        got = f"none of kind {', '.join(missing)}"
        yield Finding(("gates",), "every gate that class record needs", got, "add them")
    for path, gate in gates_of(preregistration, CleanLog):
        if gate.unknown_environment != "fail":
            where = (*path, "unknown_environment")
            yield Finding(where, "fail for class record", gate.unknown_environment, "write fail")


def record_has_reviewers(preregistration: AnyPreregistration) -> Iterator[Finding]:
    """Two people beside the author stand for a record."""
    required = preregistration.reviews.required
    if preregistration.campaign_class is CampaignClass.RECORD and required < REVIEWS_OF_A_RECORD:
        path = ("reviews", "required")
        yield Finding(path, f"at least {REVIEWS_OF_A_RECORD} for class record", str(required), "ask for more reviews")


def record_is_balanced(preregistration: Preregistration) -> Iterator[Finding]:
    """A drift of the host over time must not favour an arm: equal counts, equal mean positions, two starts each."""
    order = preregistration.schedule.order
    if preregistration.campaign_class is not CampaignClass.RECORD or len({Arm.of_leg(leg) for leg in order}) == 1:
        return
    positions = {arm: [index for index, leg in enumerate(order) if Arm.of_leg(leg) is arm] for arm in Arm}
    control, candidate = positions[Arm.CONTROL], positions[Arm.CANDIDATE]
    if len(control) == len(candidate) > 1 and sum(control) == sum(candidate):
        return
    expected = "a balanced order of at least two starts an arm for class record"
    yield Finding(("schedule", "order"), expected, " ".join(order), "use [A1, B1, B2, A2]")


CLAIM_RULES = (
    expectation_is_a_range,
    unsigned_is_exploratory,
    signatures_have_signers,
    power_is_a_chance,
    waiver_is_for_records,
    record_has_its_numbers,
    record_has_its_gates,
    record_has_reviewers,
    record_is_balanced,
)
