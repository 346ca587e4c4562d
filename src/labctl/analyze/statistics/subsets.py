"""Counting subsets by their product, exactly: the one sum behind every permutation test here."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from labctl.analyze.statistics.logs import log_units

NEAR_UNITS = 10_000
"""Sums of logs that are nearer may stand for equal products: those products are compared as integers."""


@dataclass(frozen=True, slots=True)
class _Subset:
    log: int
    numerator: int
    denominator: int


def count_at_least(factors: Sequence[Fraction], bound: Fraction) -> int:
    """How many of all subsets, the empty one included, have a product of at least `bound`; factors are positive."""
    proper = [factor for factor in factors if factor != 1]
    middle = len(proper) // 2
    lefts, rights = (_by_size(half) for half in (proper[:middle], proper[middle:]))
    found = _count(_all(lefts), _all(rights), bound)
    return found << (len(factors) - len(proper))


def count_of_size_at_least(factors: Sequence[Fraction], bound: Fraction, size: int) -> int:
    """How many of the subsets of `size` members have a product of at least `bound`; factors are positive."""
    middle = len(factors) // 2
    lefts, rights = (_by_size(half) for half in (factors[:middle], factors[middle:]))
    sizes = range(max(0, size - len(rights) + 1), min(size, len(lefts) - 1) + 1)
    return sum(_count(lefts[taken], rights[size - taken], bound) for taken in sizes)


def _by_size(factors: Sequence[Fraction]) -> list[list[_Subset]]:
    """Every subset, by its number of members."""
    found: list[list[_Subset]] = [[_Subset(0, 1, 1)]]
    for factor in factors:
        log, top, bottom = log_units(factor), factor.numerator, factor.denominator
        found.append([])
        for size in range(len(found) - 1, 0, -1):
            found[size] += [
                _Subset(one.log + log, one.numerator * top, one.denominator * bottom) for one in found[size - 1]
            ]
    return found


def _all(by_size: list[list[_Subset]]) -> list[_Subset]:
    return [subset for subsets in by_size for subset in subsets]


def _count(lefts: Sequence[_Subset], rights: Sequence[_Subset], bound: Fraction) -> int:
    ordered = sorted(rights, key=_log)
    logs = [one.log for one in ordered]
    needed, count = log_units(bound), 0
    for left in lefts:
        rest = needed - left.log
        near = bisect_left(logs, rest - NEAR_UNITS)
        sure = bisect_right(logs, rest + NEAR_UNITS, lo=near)
        count += len(logs) - sure
        count += sum(_is_at_least(left, right, bound) for right in ordered[near:sure])
    return count


def _log(subset: _Subset) -> int:
    return subset.log


def _is_at_least(left: _Subset, right: _Subset, bound: Fraction) -> bool:
    product = left.numerator * right.numerator * bound.denominator
    return product >= left.denominator * right.denominator * bound.numerator
