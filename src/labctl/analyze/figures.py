"""Exact numbers, and how they are written down."""

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

from labctl.records.verdict import Figure

SHOWN_DIGITS = 12
SHORT_DIGITS = 4
ROOT_DIGITS = 40
HUNDRED = 100


def figure(name: str, where: str, value: Fraction | int, unit: str) -> Figure:
    """One exact number."""
    exact = Fraction(value)
    return Figure(name=name, where=where, value=exact_text(exact), decimal=decimal_text(exact), unit=unit)


def decimal_figure(name: str, where: str, value: Decimal, unit: str) -> Figure:
    """One number that is not rational (a square root), as decimal text of its own precision."""
    shown = Context(prec=SHOWN_DIGITS).plus(value)
    return Figure(name=name, where=where, value=f"{value:f}", decimal=f"{shown.normalize():f}", unit=unit)


def exact_text(value: Fraction) -> str:
    """An integer, or `numerator/denominator` in lowest terms."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def decimal_text(value: Fraction) -> str:
    """The number to 12 significant digits, never in scientific notation."""
    rounded = Context(prec=SHOWN_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}"


def short_text(value: Fraction) -> str:
    """The number to 4 significant digits, with its whole integer part, for sentences."""
    whole = len(str(abs(value.numerator) // value.denominator))
    rounded = Context(prec=max(SHORT_DIGITS, whole)).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}"


def median(values: Sequence[Fraction]) -> Fraction:
    """The middle value, or the mean of the two middle values."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def mean(values: Sequence[Fraction]) -> Fraction:
    """The arithmetic mean."""
    return sum(values, Fraction(0)) / len(values)


def quantile(values: Sequence[Fraction], share: Fraction) -> Fraction:
    """A quantile by linear interpolation between order statistics (the position is share x (n - 1))."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = position.numerator // position.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def sample_sd(values: Sequence[Fraction]) -> Decimal:
    """The sample standard deviation of at least two values, to 40 significant digits."""
    centre = mean(values)
    variance = sum(((value - centre) ** 2 for value in values), Fraction(0)) / (len(values) - 1)
    context = Context(prec=ROOT_DIGITS)
    return context.sqrt(context.divide(Decimal(variance.numerator), Decimal(variance.denominator)))


def gain_percent(candidate: Fraction, control: Fraction) -> Fraction:
    """How much more the candidate is, in percent of the control."""
    return (candidate / control - 1) * HUNDRED
