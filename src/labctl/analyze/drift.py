"""How far the starts of one arm lie apart, and whether the gain between the arms still means anything then."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import figure, gain_percent, short_text
from labctl.analyze.pairs import overall_gain_percent
from labctl.analyze.timing import RATE, headline
from labctl.prereg.field_types import MetricId
from labctl.prereg.model import Arm
from labctl.records.verdict import Figure

DOUBTFUL_PERCENT = 2
SPREADS = {Arm.CONTROL: "control_spread", Arm.CANDIDATE: "candidate_spread"}
ARM_NAMES = {Arm.CONTROL: "controls", Arm.CANDIDATE: "candidates"}


@dataclass(frozen=True, slots=True)
class ArmSpread:
    """The slowest and the fastest start of one arm."""

    arm: Arm
    slowest: tuple[str, Fraction]
    fastest: tuple[str, Fraction]

    @property
    def percent(self) -> Fraction:
        """How much faster the fastest is, in percent of the slowest."""
        return gain_percent(self.fastest[1], self.slowest[1])

    def figure(self) -> Figure:
        """The spread, exactly."""
        return figure(SPREADS[self.arm], "", self.percent, "percent")


def arm_spreads(evidence: RunEvidence, metric: MetricId) -> tuple[ArmSpread, ...]:
    """The spread of each arm that has two starts with a headline."""
    return tuple(spread for arm in Arm if (spread := _spread(evidence, arm, metric)) is not None)


def drift_warnings(evidence: RunEvidence, metric: MetricId) -> Iterator[str]:
    """A doubt for each arm whose starts lie apart by more than 2 %, or by more than half of the gain."""
    gain = overall_gain_percent(evidence, metric)
    for spread in arm_spreads(evidence, metric):
        exceeds_gain = gain is not None and 2 * spread.percent > abs(gain)
        if spread.percent > DOUBTFUL_PERCENT or exceeds_gain:
            yield f"{_said(spread)}: {_meaning(spread, gain)}"


def _spread(evidence: RunEvidence, arm: Arm, metric: MetricId) -> ArmSpread | None:
    measured = [(leg.name, speed) for leg in evidence.arm(arm) if (speed := headline(leg.rows, metric)) is not None]
    if len(measured) < 2:  # noqa: PLR2004 (one start has no spread)
        return None
    return ArmSpread(arm, min(measured, key=_speed), max(measured, key=_speed))


def _speed(measured: tuple[str, Fraction]) -> Fraction:
    return measured[1]


def _said(spread: ArmSpread) -> str:
    first, last = sorted((spread.slowest, spread.fastest))
    return (
        f"{ARM_NAMES[spread.arm]} {first[0]} and {last[0]} differ by {short_text(spread.percent)} % "
        f"({short_text(first[1])} and {short_text(last[1])} {RATE})"
    )


def _meaning(spread: ArmSpread, gain: Fraction | None) -> str:
    if gain is None:
        return "no difference below that can be told on this machine"
    shown = f"the headline gain of {short_text(gain)} %"
    if spread.percent > abs(gain):
        return f"more than {shown}, which may be nothing but drift"
    if 2 * spread.percent > abs(gain):
        return f"more than half of {shown}"
    return f"{shown} is uncertain by about as much"
