"""What the registered noise record says of a run: whose noise it is, and how large the effect is beside it."""

import math
from decimal import Decimal
from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import HUNDRED, decimal_figure, short_text
from labctl.analyze.pairs import overall_gain_percent
from labctl.analyze.served import engine_served
from labctl.packet.lane import lane_target
from labctl.packet.noise_host import host_differences
from labctl.prereg.field_types import MetricId
from labctl.prereg.noise import NoiseRecord, log_of_percent
from labctl.records.verdict import Figure


def strangeness(noise: NoiseRecord, evidence: RunEvidence) -> tuple[str, ...]:
    """In what the record's host and service are not this run's; nothing where it speaks of this run."""
    if evidence.host is None:
        return ("the host, which this run does not record",)
    differing = list(host_differences(noise, evidence.host))
    differing += ["engine"] if noise.engine != engine_served(evidence) else []
    differing += ["target"] if noise.target != lane_target(evidence.packet) else []
    return tuple(differing)


def rests_on_foreign_noise(evidence: RunEvidence) -> bool:
    """Whether a power is stated that rests on noise of another host or service, or on none that can be read."""
    if evidence.packet.preregistration.power is None:
        return False
    return evidence.noise is None or bool(strangeness(evidence.noise, evidence))


def noise_lines(evidence: RunEvidence) -> list[str]:
    """Whose noise was registered, and what can be seen through it; nothing where no power is stated."""
    power, planned = evidence.packet.preregistration.power, evidence.packet.planned_power
    if power is None:
        return []
    noise = evidence.noise
    if noise is None:
        return [f"the registered noise record {power.noise_record} cannot be read: power says nothing here"]
    if differing := strangeness(noise, evidence):
        what = ", ".join(differing)
        return [f"the noise record {noise.id} is of another host or service ({what} differ): its figures are not used"]
    spread = f"{_short(noise.start_sd_percent)} % (95 %: {_short(noise.start_sd_lower_percent)} to "
    spread += f"{_short(noise.start_sd_upper_percent)} %, from {noise.df + len(noise.runs)} starts)"
    lines = [f"noise record {noise.id}, of this host: equal starts lie apart with an SD of {spread}"]
    if planned is not None:
        seen = planned.minimum_effect_percent
        smallest = "nothing is seen" if seen is None else f"the smallest effect that is seen is {_short(seen)} %"
        lines.append(f"planned with that: power {planned.power} for {power.planned_effect_percent} %; {smallest}")
    return lines


def noise_use_figures(evidence: RunEvidence, metric: MetricId) -> tuple[Figure, ...]:
    """The effect in SDs between starts of a noise record that speaks of this run."""
    noise, gain = evidence.noise, overall_gain_percent(evidence, metric)
    if noise is None or gain is None or gain <= -HUNDRED or strangeness(noise, evidence):
        return ()
    in_sds = math.log(1 + gain / HUNDRED) / log_of_percent(noise.start_sd_percent)
    return (
        decimal_figure("noise_record_start_sd", "", Decimal(noise.start_sd_percent), "percent"),
        decimal_figure("effect_in_start_sds", "", Decimal(f"{in_sds:.9f}"), "SDs"),
    )


def _short(text: str) -> str:
    return short_text(Fraction(text))
