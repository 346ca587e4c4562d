"""What may be concluded, as figures: the effect between starts, and how consistent it is within them.

Signed figures come twice: `_log` is 100 times a log ratio and turns around exactly when the arms are swapped,
`_percent` is the gain that it stands for.
"""

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import decimal_figure, figure, median
from labctl.analyze.speeds import RunSpeeds, run_speeds
from labctl.analyze.statistics.logs import gain_of_log, log_of, settled
from labctl.analyze.statistics.permutation import permute_over, permute_starts
from labctl.analyze.statistics.ranks import MOST_RANKED_ROWS, RankInterval, WalshAverages, median_interval
from labctl.analyze.statistics.signs import sign_flips
from labctl.analyze.statistics.starts import (
    Fit,
    deciding_fit,
    effect_p,
    effect_t,
    fit_with_drift,
    fit_without_drift,
    interval,
    lower_bound,
)
from labctl.prereg.designs import mirrored
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Arm
from labctl.records.verdict import Figure

CONFIDENCE = Fraction(95, 100)
LOG_PERCENT = "log percent"
DIGITS = 30
Assignments = tuple[tuple[Arm, ...], ...]


def conclusion_figures(evidence: RunEvidence, metric: MetricId) -> tuple[Figure, ...]:
    """Every figure that can be computed; none between starts where one of them lacks."""
    speeds = run_speeds(evidence, metric)
    return tuple(figures_of_speeds(speeds, _drawn_from(evidence)))


def figures_of_speeds(speeds: RunSpeeds, drawn_from: Assignments | None = None) -> Iterator[Figure]:
    """The same from speeds alone, and from the assignments of the arms that were drawn from, where any were."""
    headlines = speeds.headlines()
    if headlines is None:
        return
    yield from _start_figures([log_of(value) for value in headlines], speeds.arms)
    yield from _permutation_figures(headlines, speeds.arms, drawn_from)
    yield from _row_figures(speeds)


def _drawn_from(evidence: RunEvidence) -> Assignments | None:
    if evidence.packet.preregistration.schedule.mirror is None:
        return None
    orders = (evidence.order, mirrored(evidence.order))
    return tuple(tuple(Arm.of_leg(leg) for leg in order) for order in orders)


def _start_figures(logs: list[Fraction], arms: tuple[Arm, ...]) -> Iterator[Figure]:
    deciding = deciding_fit(logs, arms)
    if deciding is None:
        return
    yield from _signed("effect", deciding.effect)
    yield decimal_figure("start_sd_log", "", _decimal(100 * deciding.start_sd), LOG_PERCENT)
    yield figure("start_degrees", "", deciding.degrees, "count")
    if deciding.residual_squares:
        yield from _test_figures(deciding)
    plain, adjusted = fit_without_drift(logs, arms), fit_with_drift(logs, arms)
    for name, fit in (("no_drift", plain), ("drift_adjusted", adjusted)):
        if fit is not None and fit.residual_squares:
            bounds = interval(fit, CONFIDENCE)
            yield from _signed(f"{name}_lower", bounds.lower)
            yield from _signed(f"{name}_upper", bounds.upper)
    if adjusted is not None and adjusted.drift is not None:
        yield from _signed("drift_per_start", adjusted.drift)


def _test_figures(fit: Fit) -> Iterator[Figure]:
    yield from _signed("effect_bound", lower_bound(fit, CONFIDENCE))
    yield decimal_figure("effect_t", "", _decimal(effect_t(fit)), "standard errors")
    yield decimal_figure("effect_p", "", _decimal(effect_p(fit)), "share")


def _permutation_figures(
    speeds: tuple[Fraction, ...], arms: tuple[Arm, ...], drawn_from: Assignments | None
) -> Iterator[Figure]:
    found = permute_starts(speeds, arms) if drawn_from is None else permute_over(speeds, arms, drawn_from)
    yield figure("start_permutation_count", "", found.count, f"of {found.total} assignments")
    yield figure("start_permutation_p", "", found.p_value, "share")
    yield figure("start_permutation_floor", "", found.floor, "share")


def _row_figures(speeds: RunSpeeds) -> Iterator[Figure]:
    effects = speeds.row_effects()
    if not effects:
        return
    flips = sign_flips([one.ratio for one in effects])
    if flips is not None:
        yield figure("sign_flip_count", "", flips.count, f"of {flips.total} flips")
        yield figure("sign_flip_p", "", flips.p_value, "share")
    logs = [one.log for one in effects]
    if len(logs) <= MOST_RANKED_ROWS:
        averages = WalshAverages.of(logs)
        yield from _signed("hodges_lehmann", averages.median())
        yield from _rank_figures("hodges_lehmann", averages.interval(CONFIDENCE))
    yield from _signed("median_row", median(logs))
    yield from _rank_figures("median_row", median_interval(logs, CONFIDENCE))


def _rank_figures(name: str, found: RankInterval | None) -> Iterator[Figure]:
    if found is not None:
        yield from _signed(f"{name}_lower", found.lower)
        yield from _signed(f"{name}_upper", found.upper)
        yield figure(f"{name}_coverage", "", found.coverage, "share")


def _signed(name: str, log: Fraction | float) -> Iterator[Figure]:
    log = log if isinstance(log, float) else settled(log)  # a mean of four logs of equal products is 0, not nearly 0
    yield decimal_figure(f"{name}_log", "", _decimal(100 * log), LOG_PERCENT)
    gain = gain_of_log(float(log))
    if math.isfinite(gain):
        yield decimal_figure(f"{name}_percent", "", _decimal(gain), "percent")


def _decimal(value: Fraction | float) -> Decimal:
    if isinstance(value, float):
        return Decimal(repr(value))
    with localcontext(prec=DIGITS):
        return Decimal(value.numerator) / Decimal(value.denominator)
