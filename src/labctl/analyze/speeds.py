"""The speeds of one run in one metric: rows and headlines of every start, in the order of the starts."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, prod

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import median
from labctl.analyze.statistics.logs import log_of
from labctl.analyze.timing import rate_of_row
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Arm


@dataclass(frozen=True, slots=True)
class StartSpeeds:
    """One start; a row that does not count has no rate, and a start with such a row has no headline."""

    name: str
    arm: Arm
    rates: tuple[Fraction | None, ...]
    headline: Fraction | None


@dataclass(frozen=True, slots=True)
class RowEffect:
    """B against A in one prompt over all starts: the log of `ratio` over `divisor` is the mean difference of logs."""

    ratio: Fraction
    divisor: int

    @property
    def log(self) -> Fraction:
        """The mean difference of logs."""
        return log_of(self.ratio) / self.divisor


@dataclass(frozen=True, slots=True)
class RowWins:
    """In how many rows of one pair of starts the candidate is strictly faster; a tie is a loss."""

    name: str
    wins: int
    rows: int


@dataclass(frozen=True, slots=True)
class RunSpeeds:
    """Every registered start that was measured."""

    metric: MetricId
    order: tuple[str, ...]
    starts: tuple[StartSpeeds, ...]

    def arm(self, arm: Arm) -> tuple[StartSpeeds, ...]:
        """The starts of one arm."""
        return tuple(start for start in self.starts if start.arm is arm)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arm of each start."""
        return tuple(start.arm for start in self.starts)

    def headlines(self) -> tuple[Fraction, ...] | None:
        """The headline of every start; None where one lacks, or an arm has none."""
        if next(self.gaps(), None) is not None:
            return None
        return tuple(start.headline for start in self.starts if start.headline is not None)

    def gaps(self) -> Iterator[str]:
        """What lacks before anything can be said of the whole run."""
        measured = {start.name for start in self.starts}
        missing = [name for name in self.order if name not in measured]
        if missing:
            yield f"{len(missing)} of {len(self.order)} starts are not there: {', '.join(missing)}"
        for arm in Arm:
            if not any(start.arm is arm for start in self.starts):
                yield f"no start of arm {arm}"
        for start in self.starts:
            if start.headline is None:
                yield f"{start.name}: a row has no {self.metric}"

    def pairs(self) -> tuple[RowWins, ...]:
        """A1 with B1, A2 with B2, and so on, as far as both are there."""
        return tuple(_wins(a, b) for a, b in zip(self.arm(Arm.CONTROL), self.arm(Arm.CANDIDATE), strict=False))

    def row_effects(self) -> tuple[RowEffect, ...] | None:
        """The effect in each prompt; None where a start or a row lacks."""
        controls, candidates = (tuple(start.rates for start in self.arm(arm)) for arm in Arm)
        rates = [*controls, *candidates]
        if self.headlines() is None or len({len(one) for one in rates}) != 1:
            return None
        shared = gcd(len(controls), len(candidates))
        powers = len(controls) // shared, len(candidates) // shared
        divisor = len(controls) * len(candidates) // shared
        pairs = zip(zip(*candidates, strict=True), zip(*controls, strict=True), strict=True)
        return tuple(RowEffect(_product(b) ** powers[0] / _product(a) ** powers[1], divisor) for b, a in pairs)


def run_speeds(evidence: RunEvidence, metric: MetricId) -> RunSpeeds:
    """The speeds of every start that is there."""
    starts = tuple(_start(leg, metric) for leg in evidence.legs)
    return RunSpeeds(metric, evidence.order, starts)


def _wins(control: StartSpeeds, candidate: StartSpeeds) -> RowWins:
    both = zip(control.rates, candidate.rates, strict=False)
    wins = sum(a is not None and b is not None and b > a for a, b in both)
    return RowWins(f"{candidate.name} vs {control.name}", wins, max(len(control.rates), len(candidate.rates)))


def _start(leg: LegEvidence, metric: MetricId) -> StartSpeeds:
    rates = tuple(rate_of_row(row, metric) for row in leg.rows)
    known = [rate for rate in rates if rate is not None]
    headline = median(known) if known and len(known) == len(rates) else None
    return StartSpeeds(leg.name, leg.arm, rates, headline)


def _product(rates: tuple[Fraction | None, ...]) -> Fraction:
    return prod((rate for rate in rates if rate is not None), start=Fraction(1))
