"""How far equal starts of one host lie apart: what a calibration measures."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from labctl.analyze.evidence import LegEvidence
from labctl.analyze.figures import decimal_figure, exact_text, figure, median
from labctl.analyze.timing import rate_of_row
from labctl.prereg.field_types import MetricId
from labctl.prereg.noise import NoiseStart, percent_of_log
from labctl.records.verdict import Figure

if TYPE_CHECKING:
    from labctl.power import Limits

PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Noise:
    """What the starts of one service show; differences of logarithms."""

    starts: tuple[NoiseStart, ...]
    start_sd: float
    drift_per_start: float
    row_sd: float
    row_df: int

    @property
    def limits(self) -> "Limits | None":
        """The SD between starts with its confidence limits; None where no start differs from another."""
        from labctl.power import sd_limits  # noqa: PLC0415 (start-up time; only a calibration needs scipy)

        return sd_limits(self.start_sd, len(self.starts) - 1) if self.start_sd > 0 else None

    def figures(self) -> Iterator[Figure]:
        """Everything as figures of a verdict."""
        yield figure("noise_starts", "", len(self.starts), "starts")
        yield percent_figure("noise_start_sd", self.start_sd)
        if self.limits is not None:
            yield percent_figure("noise_start_sd_lower", self.limits.lower)
            yield percent_figure("noise_start_sd_upper", self.limits.upper)
            yield percent_figure("noise_start_sd_planning", self.limits.planning)
        yield percent_figure("noise_row_sd", self.row_sd)
        yield percent_figure("noise_drift_per_start", self.drift_per_start)


def noise_of(legs: Sequence[LegEvidence], metric: MetricId) -> Noise | None:
    """The noise of starts that ran one service; None for fewer than two, and where a row does not count."""
    rates = [[rate_of_row(row, metric) for row in leg.rows] for leg in legs]
    known = [[rate for rate in start if rate is not None] for start in rates]
    counts = {len(start) for start in rates}
    if len(legs) < 2 or len(counts) != 1 or min(counts) < 2 or known != rates:  # noqa: PLR2004 (one shows no spread)
        return None
    headlines = [median(start) for start in known]
    logs = [math.log(headline) for headline in headlines]
    row_logs = [[math.log(rate) for rate in start] for start in known]
    return Noise(
        starts=tuple(
            NoiseStart(leg=leg.name, headline=exact_text(one)) for leg, one in zip(legs, headlines, strict=True)
        ),
        start_sd=_sd(logs),
        drift_per_start=_slope(logs),
        row_sd=_row_sd(row_logs),
        row_df=(len(legs) - 1) * (len(row_logs[0]) - 1),
    )


def _row_sd(logs: list[list[float]]) -> float:
    """What is left of single rows once their start's mean and their prompt's mean are taken away."""
    start_means = [_mean(start) for start in logs]
    prompt_means = [_mean(prompt) for prompt in zip(*logs, strict=True)]
    centre = _mean(start_means)
    squares = [
        (value - start_mean - prompt_mean + centre) ** 2
        for start, start_mean in zip(logs, start_means, strict=True)
        for value, prompt_mean in zip(start, prompt_means, strict=True)
    ]
    return math.sqrt(math.fsum(squares) / ((len(logs) - 1) * (len(prompt_means) - 1)))


def _sd(values: Sequence[float]) -> float:
    centre = _mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def _slope(values: Sequence[float]) -> float:
    middle = (len(values) - 1) / 2
    places = [place - middle for place in range(len(values))]
    return math.fsum(p * v for p, v in zip(places, values, strict=True)) / math.fsum(p * p for p in places)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def percent_figure(name: str, difference: float) -> Figure:
    """A difference of logarithms as a figure in percent."""
    return decimal_figure(name, "", Decimal(percent_of_log(difference)), PERCENT)
