"""Permutation of the arms over whole starts: exact, and valid only for the randomisation that was used."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, prod

from labctl.analyze.statistics.subsets import count_of_size_at_least
from labctl.prereg.model import Arm


@dataclass(frozen=True, slots=True)
class Permutations:
    """How many of all assignments of the arms have an effect of at least the observed one, which is among them."""

    count: int
    total: int

    @property
    def p_value(self) -> Fraction:
        """The one-sided p value."""
        return Fraction(self.count, self.total)

    @property
    def floor(self) -> Fraction:
        """The smallest p value that this many assignments can give."""
        return Fraction(1, self.total)


def permute_starts(speeds: Sequence[Fraction], arms: Sequence[Arm]) -> Permutations:
    """Over every assignment with as many candidates: the reference set of complete randomisation.

    With the number of candidates fixed, the effect on logs grows with the product of the candidates' speeds alone.
    """
    size = sum(arm is Arm.CANDIDATE for arm in arms)
    observed = _candidate_product(speeds, arms)
    return Permutations(count_of_size_at_least(speeds, observed, size), comb(len(speeds), size))


def permute_over(speeds: Sequence[Fraction], arms: Sequence[Arm], assignments: Sequence[Sequence[Arm]]) -> Permutations:
    """Over the assignments that the design could have drawn, each with as many candidates as the one that it drew.

    Raises:
        ValueError: the assignment that was used is not among them, or one has another number of candidates.
    """
    counts = {sum(arm is Arm.CANDIDATE for arm in one) for one in (arms, *assignments)}
    if tuple(arms) not in {tuple(one) for one in assignments} or len(counts) != 1:
        message = "assignments that do not hold the one that was used, or are not alike"
        raise ValueError(message)
    observed = _candidate_product(speeds, arms)
    count = sum(_candidate_product(speeds, one) >= observed for one in assignments)
    return Permutations(count, len(assignments))


def _candidate_product(speeds: Sequence[Fraction], arms: Sequence[Arm]) -> Fraction:
    chosen = (speed for speed, arm in zip(speeds, arms, strict=True) if arm is Arm.CANDIDATE)
    return prod(chosen, start=Fraction(1))
