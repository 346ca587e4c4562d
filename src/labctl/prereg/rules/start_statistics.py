"""Rules for gates over whole starts: each has starts, rows and bounds to be judged by."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from labctl.prereg.finding import Finding
from labctl.prereg.model import Arm, CampaignClass, Preregistration
from labctl.prereg.rules.arms import arms_of
from labctl.prereg.rules.gates import gates_of
from labctl.prereg.statistics_gates import (
    ROWS_AT_1_PERCENT,
    WINS_AT_1_PERCENT,
    Consistency,
    Drift,
    Effect,
    Equivalence,
    Separation,
    StatisticsGate,
)
from labctl.prereg.suite import Suite

REPEATED = 2
CONFIDENCES_OF_A_BOUND = (Decimal("0.8"), Decimal("0.9999"))
MOST_RANKED_ROWS = 128
RECORD_CONFIDENCE = Decimal("0.95")
LEAST_CONFIDENCE = Decimal("0.5")


def starts_to_compare_exist(preregistration: Preregistration) -> Iterator[Finding]:
    """A gate over whole starts has both arms, and starts that repeat another where it looks at their spread."""
    order = preregistration.schedule.order
    counts = [sum(Arm.of_leg(leg) is arm for leg in order) for arm in Arm]
    for index, gate in enumerate(preregistration.gates):
        path = ("gates", index, "kind")
        if isinstance(gate, StatisticsGate) and len(arms_of(preregistration)) == 1:
            yield Finding(path, "starts of both arms", "one arm", "order both arms, or drop the gate")
        elif isinstance(gate, Drift | Effect | Equivalence) and min(counts) < REPEATED:
            yield Finding(path, "two starts of each arm", " ".join(order), "use [A1, B1, B2, A2]")


def bounds_are_stated(preregistration: Preregistration) -> Iterator[Finding]:
    """A bound that follows from the planned effect needs one."""
    if preregistration.power is not None or preregistration.campaign_class is CampaignClass.RECORD:
        return  # class record needs `power` anyway, and `record_has_its_numbers` speaks of it
    unstated = [(path, "max_percent") for path, gate in gates_of(preregistration, Drift) if gate.max_percent is None]
    for path, gate in gates_of(preregistration, Separation):
        unstated += [(path, "margin_percent")] if gate.margin_percent is None else []
    for path, key in unstated:
        expected = f"`{key}`, or `power` with a planned effect that it follows from"
        yield Finding((*path, "kind"), expected, "neither", f"add `{key}`")


def bounds_are_possible(preregistration: Preregistration) -> Iterator[Finding]:
    """A limit is above 0, a margin is not below."""
    for index, gate in enumerate(preregistration.gates):
        for key in ("max_percent", "within_percent"):
            if isinstance(gate, Drift | Equivalence) and Decimal(value := getattr(gate, key, None) or "1") <= 0:
                yield Finding(("gates", index, key), "more than 0", value, "correct it")
        if isinstance(gate, Separation | Effect) and Decimal(value := gate.margin_percent or "0") < 0:
            yield Finding(("gates", index, "margin_percent"), "0 or more", value, "correct it")


def confidences_are_shares(preregistration: Preregistration) -> Iterator[Finding]:
    """A confidence is a share that both analyzers compute to nine digits."""
    lowest, highest = CONFIDENCES_OF_A_BOUND
    for index, gate in enumerate(preregistration.gates):
        path = ("gates", index, "confidence")
        if isinstance(gate, Effect | Equivalence) and not lowest <= Decimal(gate.confidence) <= highest:
            yield Finding(path, f"from {lowest} to {highest}", gate.confidence, 'write a share such as "0.95"')
        if isinstance(gate, Consistency) and not LEAST_CONFIDENCE <= Decimal(gate.confidence) < 1:
            yield Finding(path, f"from {LEAST_CONFIDENCE} to less than 1", gate.confidence, 'such as "0.95"')


def reported_value_fits_the_starts(preregistration: Preregistration) -> Iterator[Finding]:
    """The lower of two starts is a little below their mean; the lowest of many sinks with their number."""
    decision, path = preregistration.decision, ("decision", "reported_value")
    if decision is None:
        return
    candidates = sum(Arm.of_leg(leg) is Arm.CANDIDATE for leg in preregistration.schedule.order)
    is_record = preregistration.campaign_class is CampaignClass.RECORD
    if decision.reported_value == "confidence_bound" and candidates <= REPEATED:
        got = f"confidence_bound of {candidates}"
        yield Finding(path, "lower_candidate_start for one or two candidate starts", got, "write lower_candidate_start")
    if decision.reported_value == "lower_candidate_start" and candidates > REPEATED and is_record:
        got = f"lower_candidate_start of {candidates}"
        yield Finding(path, "confidence_bound for a record of more than two candidate starts", got, "correct it")


def record_keeps_the_default_rules(preregistration: Preregistration) -> Iterator[Finding]:
    """The error rates that are published are those of the default rules; a record may be stricter, never weaker."""
    power = preregistration.power
    if preregistration.campaign_class is not CampaignClass.RECORD or power is None:
        return
    half = Decimal(power.planned_effect_percent) / 2
    for index, gate in enumerate(preregistration.gates):
        path = ("gates", index)
        if isinstance(gate, Drift) and Decimal(gate.max_percent or "0") > min(half, Decimal(1)):
            expected = f"at most {min(half, Decimal(1)):f} for class record"
            yield Finding((*path, "max_percent"), expected, gate.max_percent or "", "leave it out")
        if isinstance(gate, Separation) and gate.margin_percent and 0 <= Decimal(gate.margin_percent) < half:
            expected = f"at least {half:f} for class record"
            yield Finding((*path, "margin_percent"), expected, gate.margin_percent, "leave it out")
        if isinstance(gate, Effect) and Decimal(gate.confidence) < RECORD_CONFIDENCE:
            expected = f"at least {RECORD_CONFIDENCE} for class record"
            yield Finding((*path, "confidence"), expected, gate.confidence, "leave it out")


def power_is_that_of_the_test(preregistration: Preregistration) -> Iterator[Finding]:
    """Power is planned at the error rate of the `effect` gate or a stricter one; a looser one sees too much."""
    power = preregistration.power
    if power is None or not 0 < Decimal(power.alpha) < 1:
        return
    rates = [1 - Decimal(gate.confidence) for _, gate in gates_of(preregistration, Effect)]
    if Decimal(power.alpha) > (least := min(rates, default=Decimal(1))) > 0:
        expected = f"at most {least:f}, the error rate of gate effect"
        yield Finding(("power", "alpha"), expected, power.alpha, f'write "{least:f}"')


def rows_are_sure(preregistration: Preregistration, suite: Suite) -> Iterator[Finding]:
    """The interval over the rows of a record has 95 % confidence, or all that its rows can give."""
    if preregistration.campaign_class is not CampaignClass.RECORD:
        return
    widest = Decimal(1) - Decimal(2) / 2 ** min(len(suite.prompts), MOST_RANKED_ROWS)
    least = min(RECORD_CONFIDENCE, widest)
    for path, gate in gates_of(preregistration, Consistency):
        if LEAST_CONFIDENCE <= Decimal(gate.confidence) < least:
            expected = f"at least {least:f} for class record"
            yield Finding((*path, "confidence"), expected, gate.confidence, f'write "{least:f}"')


def rows_suffice(preregistration: Preregistration, suite: Suite) -> Iterator[Finding]:
    """The rows of a suite can win as often as is asked, and give an interval of the confidence that is asked."""
    rows = len(suite.prompts)
    widest = 1 - Fraction(2, 2**rows)
    for path, gate in gates_of(preregistration, Consistency):
        if gate.min_row_wins > rows:
            got = str(gate.min_row_wins)
            yield Finding((*path, "min_row_wins"), f"at most {rows}, the prompts of the suite", got, "lower it")
        least = -(-rows * WINS_AT_1_PERCENT // ROWS_AT_1_PERCENT)
        if preregistration.campaign_class is CampaignClass.RECORD and gate.min_row_wins < least:
            expected = f"at least {least} of {rows} for class record"
            yield Finding((*path, "min_row_wins"), expected, str(gate.min_row_wins), f"write {least}")
        if rows > MOST_RANKED_ROWS:
            expected = f"a suite of at most {MOST_RANKED_ROWS} prompts for this gate"
            yield Finding((*path, "kind"), expected, str(rows), "use a shorter suite, or drop the gate")
        if widest < Fraction(gate.confidence) < 1:
            expected = f"at most {float(widest):.6g}, all that {rows} rows can give"
            yield Finding((*path, "confidence"), expected, gate.confidence, "lower it, or ask more prompts")


START_STATISTICS_RULES = (
    starts_to_compare_exist,
    bounds_are_stated,
    bounds_are_possible,
    confidences_are_shares,
    reported_value_fits_the_starts,
    record_keeps_the_default_rules,
    power_is_that_of_the_test,
)
