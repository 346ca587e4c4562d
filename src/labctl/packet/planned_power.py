"""What a campaign can see, computed from its noise record as it is frozen; a claim that sees nothing is refused."""

from pathlib import Path

from labctl.codes import Code
from labctl.errors import FreezeRefused, InvalidPreregistration, Problem
from labctl.packet.contents import EndpointSubject
from labctl.packet.model import PlannedPower
from labctl.power import MIN_POWER, Limits, minimum_effect_in_sds, power_of, sd_limits, starts_needed
from labctl.prereg.campaign_files import load_campaign
from labctl.prereg.model import MOST_LEGS, Arm, CampaignClass, Power, Preregistration
from labctl.prereg.noise import SAME_WITHIN, NoiseRecord, log_of_percent, percent_of_log, pooled_log_sd
from labctl.prereg.statistics_gates import Effect

NOISE_ROLE = "noise.json"
LARGEST_LOG = 700.0
"""No float holds the percentage of a larger one."""
CLAIMING = (CampaignClass.COMPARISON, CampaignClass.RECORD)


def plan_power(subject: EndpointSubject) -> PlannedPower | None:
    """The power of a campaign that states one; None for any other.

    The SD between starts is planned with its upper 80 % confidence limit, computed anew from the record's starts.

    Raises:
        MalformedRecord: the pinned noise record is not one.
    """
    said = subject.preregistration
    if said.power is None:
        return None
    noise = NoiseRecord.from_json(subject.input(NOISE_ROLE), NOISE_ROLE)
    return power_with(noise, said.power, said.schedule.order, claimed_margin(said))


def power_with(noise: NoiseRecord, power: Power, order: tuple[str, ...], margin: float = 0.0) -> PlannedPower:
    """What an order of starts can see through some noise, above a margin in logs.

    Raises:
        FreezeRefused: as `true_limits`.
    """
    sd = true_limits(noise).planning
    starts, alpha, wanted = _starts(order), float(power.alpha), wanted_power(power)
    effect_in_sds = (log_of_percent(power.planned_effect_percent) - margin) / sd
    smallest = minimum_effect_in_sds(starts, alpha, wanted) * sd + margin
    return PlannedPower(
        start_sd_percent=percent_of_log(sd),
        starts=starts,
        power=f"{power_of(effect_in_sds, starts, alpha):.4f}",
        minimum_effect_percent=percent_of_log(smallest) if smallest < LARGEST_LOG else None,
        starts_needed=starts_needed(effect_in_sds, alpha, wanted),
    )


def true_limits(noise: NoiseRecord) -> Limits:
    """The confidence limits of a noise record, computed anew; a verdict prints those that it states.

    Raises:
        FreezeRefused: the record states other limits (RULE).
    """
    limits = sd_limits(*pooled_log_sd(noise.runs))
    stated = (
        ("start_sd_lower_percent", noise.start_sd_lower_percent, limits.lower),
        ("start_sd_upper_percent", noise.start_sd_upper_percent, limits.upper),
        ("start_sd_planning_percent", noise.start_sd_planning_percent, limits.planning),
    )
    do = "pool the sealed runs anew with `labctl power pool`"
    problems = [
        Problem(Code.RULE, f"noise record {noise.id}: {name}", f"{percent_of_log(limit)}, from its starts", value, do)
        for name, value, limit in stated
        if abs(log_of_percent(value) - limit) > SAME_WITHIN * limit
    ]
    if problems:
        raise FreezeRefused(problems)
    return limits


def claimed_margin(said: Preregistration) -> float:
    """The largest margin, in logs, that a gate on the effect wants to see exceeded."""
    margins = [log_of_percent(gate.margin_percent) for gate in said.gates if isinstance(gate, Effect)]
    return max(margins, default=0.0)


def wanted_power(power: Power) -> float:
    """The chance of detection that a claim needs: what is registered, and never less than 0.8."""
    return max(float(power.power), MIN_POWER)


def refuse_underpowered(subject: EndpointSubject, planned: PlannedPower | None) -> None:
    """Refuse a claim that its own noise record says could not be seen; exploring and rehearsing may go on.

    Raises:
        FreezeRefused: with the number of starts that would do (RULE).
    """
    said = subject.preregistration
    if planned is None or said.power is None or subject.kind == "rehearsal" or said.campaign_class not in CLAIMING:
        return
    if float(planned.power) >= (wanted := wanted_power(said.power)):
        return
    effect = said.power.planned_effect_percent
    expected = f"a power of at least {wanted:g} for class {said.campaign_class} at {effect} %"
    got = f"{planned.power} with {planned.starts[0]} and {planned.starts[1]} starts at SD {planned.start_sd_percent} %"
    raise FreezeRefused(Problem(Code.RULE, f"{said.id}: power", expected, got, what_would_do(planned)))


def what_would_do(planned: PlannedPower) -> str:
    """What to register in place of an underpowered order."""
    if planned.starts_needed is None:
        return "lower the noise of the host, or plan for a larger effect; no number of starts would do"
    balanced = planned.starts_needed + planned.starts_needed % 2  # a linear drift cancels only for an even number
    if 2 * balanced > MOST_LEGS:
        do = "lower the noise of the host, plan for a larger effect, or choose class exploratory"
        return f"{do}; {balanced} starts of each arm would do, and an order holds {MOST_LEGS} in all"
    return f"register {balanced} starts of each arm ({2 * balanced} in all), or choose class exploratory"


def _starts(order: tuple[str, ...]) -> tuple[int, int]:
    candidates = sum(Arm.of_leg(leg) is Arm.CANDIDATE for leg in order)
    return len(order) - candidates, candidates


def campaign_power(path: Path) -> tuple[Preregistration, PlannedPower]:
    """The power of a campaign file as it lies there; nothing is frozen.

    Raises:
        InvalidPreregistration: with every problem of the campaign's files, or because it states no power (RULE).
    """
    campaign = load_campaign(path)
    said = campaign.preregistration.model
    if campaign.noise_record is None or said.power is None:
        where, do = campaign.preregistration.places.of_value(()), "add `power` with a noise record"
        raise InvalidPreregistration(Problem(Code.RULE, where, "a campaign that states a power", "none", do))
    return said, power_with(campaign.noise_record.model, said.power, said.schedule.order, claimed_margin(said))


def lines_of_plan(said: Preregistration, planned: PlannedPower) -> tuple[str, ...]:
    """The plan for people."""
    power = said.power
    if power is None:
        return ()
    counts, wanted = " and ".join(map(str, planned.starts)), wanted_power(power)
    smallest = planned.minimum_effect_percent
    return (
        f"SD between starts, upper 80 % limit: {planned.start_sd_percent} %",
        f"power for {power.planned_effect_percent} % at alpha {power.alpha} with {counts} starts: {planned.power}",
        f"smallest effect that is seen with power {wanted:g}: {'none' if smallest is None else f'{smallest} %'}",
        "the registered starts do" if float(planned.power) >= wanted else what_would_do(planned),
    )
