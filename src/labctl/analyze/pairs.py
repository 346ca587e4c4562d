"""The effect of the treatment by pair: headline gain, median paired gain, row wins."""

from dataclasses import dataclass
from fractions import Fraction

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure, gain_percent, mean, median
from labctl.analyze.statistics.signs import sign_test_p
from labctl.analyze.timing import headline, rate_of_row
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Arm
from labctl.records.verdict import Figure


@dataclass(frozen=True, slots=True)
class PairEffect:
    """B against A in one pair of starts; None where a row that is needed does not count."""

    name: str
    rows: int
    wins: int
    has_invalid_control: bool
    headline_gain_percent: Fraction | None
    median_paired_gain_percent: Fraction | None

    def figures(self) -> tuple[Figure, ...]:
        """What there is, as figures."""
        gains = (
            ("headline_gain", self.headline_gain_percent),
            ("median_paired_gain", self.median_paired_gain_percent),
        )
        known = [figure(name, self.name, value, "percent") for name, value in gains if value is not None]
        known.append(figure("row_wins", self.name, self.wins, f"of {self.rows} rows"))
        if self.rows:
            known.append(figure("sign_test_p", self.name, sign_test_p(self.wins, self.rows), "share"))
        return tuple(known)


def pair_effects(evidence: RunEvidence, metric: MetricId) -> tuple[PairEffect, ...]:
    """The effect in each pair of neighbouring starts."""
    return tuple(_effect(control, candidate, metric) for control, candidate in evidence.pairs())


def overall_gain_percent(evidence: RunEvidence, metric: MetricId) -> Fraction | None:
    """The mean of the candidates' headlines against the mean of the controls', in percent."""
    arms = [[headline(leg.rows, metric) for leg in evidence.arm(arm)] for arm in (Arm.CONTROL, Arm.CANDIDATE)]
    controls, candidates = ([value for value in values if value is not None] for values in arms)
    if not controls or not candidates or len(controls) + len(candidates) != sum(map(len, arms)):
        return None
    return gain_percent(mean(candidates), mean(controls))


def _effect(control: LegEvidence, candidate: LegEvidence, metric: MetricId) -> PairEffect:
    before = [rate_of_row(row, metric) for row in control.rows]
    after = [rate_of_row(row, metric) for row in candidate.rows]
    rows = max(len(before), len(after))
    both = [(a, b) for a, b in zip(before, after, strict=False) if a is not None and b is not None]
    whole = len(both) == rows
    headlines = (headline(control.rows, metric), headline(candidate.rows, metric))
    return PairEffect(
        name=f"{candidate.name} vs {control.name}",
        rows=rows,
        # A tie is a loss, and so is a candidate row that does not count.
        wins=sum(b > a for a, b in both),
        has_invalid_control=None in before or len(before) < rows,
        headline_gain_percent=_gain(headlines),
        median_paired_gain_percent=median([gain_percent(b, a) for a, b in both]) if both and whole else None,
    )


def _gain(headlines: tuple[Fraction | None, Fraction | None]) -> Fraction | None:
    control, candidate = headlines
    return None if control is None or candidate is None else gain_percent(candidate, control)
