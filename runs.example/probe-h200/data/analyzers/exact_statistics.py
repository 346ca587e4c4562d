"""Exact tests and estimates by the standard library alone: on fractions, by other ways than labctl goes.

Products stand for sums of logs, so that equal products are equal; only what is printed is a logarithm.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import comb, cos, pi, sin, sqrt, tan

LOG = Context(prec=50)
ROUNDING = Fraction(1, 10**30)
MOST_FLIPPED_ROWS, MOST_RANKED_ROWS, FEW_STARTS = 26, 128, 4


def log_of(value: Fraction) -> Fraction:
    """The natural logarithm, to 50 digits for numerator and denominator apart."""
    return Fraction(LOG.ln(Decimal(value.numerator))) - Fraction(LOG.ln(Decimal(value.denominator)))


def product(values: Iterable[Fraction]) -> Fraction:
    """The product of fractions."""
    found = Fraction(1)
    for value in values:
        found *= value
    return found


def sign_test_p(wins: int, rows: int) -> Fraction:
    """The upper tail of the fair binomial."""
    row = [1]
    for losses in range(1, rows - wins + 1):
        row.append(row[-1] * (rows - losses + 1) // losses)
    return Fraction(sum(row), 2**rows)


def _products(factors: Sequence[Fraction]) -> list[tuple[int, Fraction]]:
    """Size and product of every subset."""
    found = [(0, Fraction(1))]
    for factor in factors:
        found += [(size + 1, value * factor) for size, value in found]
    return found


def count_products(factors: Sequence[Fraction], bound: Fraction, size: int | None = None) -> int:
    """How many subsets (of one size, unless None) have a product of at least the bound; every comparison is exact."""
    middle = len(factors) // 2
    one, other = (_products(half) for half in (factors[:middle], factors[middle:]))
    groups: dict[int, list[Fraction]] = {}
    for members, value in other:
        groups.setdefault(0 if size is None else members, []).append(value)
    ordered = {members: sorted(values) for members, values in groups.items()}
    count = 0
    for members, value in one:
        rest = ordered.get(0 if size is None else size - members, [])
        count += len(rest) - bisect_left(rest, bound / value)
    return count


def sign_flip_count(ratios: Sequence[Fraction]) -> int | None:
    """Of all 2^n flips of log ratios: how many have a mean of at least the observed one."""
    if not 0 < len(ratios) <= MOST_FLIPPED_ROWS:
        return None
    return count_products([1 / ratio for ratio in ratios], Fraction(1))


def assignment_count(speeds: Sequence[Fraction], arms: str) -> int:
    """Of all assignments with as many candidates: how many have a candidates' product of at least the observed one."""
    observed = product(speed for speed, arm in zip(speeds, arms, strict=True) if arm == "B")
    return count_products(speeds, observed, arms.count("B"))


def walsh_averages(effects: Sequence[Fraction]) -> list[Fraction]:
    """The means of two effects, each also with itself, in order."""
    return sorted((effects[i] + effects[k]) / 2 for k in range(len(effects)) for i in range(k + 1))


def middle_of(ordered: Sequence[Fraction]) -> Fraction:
    """The median of values in order."""
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def signed_rank_counts(rows: int) -> list[int]:
    """How many subsets of the ranks 1 to `rows` have each sum."""
    counts = [1]
    for rank in range(1, rows + 1):
        shifted, kept = [0] * rank + counts, counts + [0] * rank
        counts = [a + b for a, b in zip(kept, shifted, strict=True)]
    return counts


def covering_rank(counts: Sequence[int], confidence: Fraction) -> tuple[int, Fraction] | None:
    """The largest rank from either end whose interval covers that much, and what it covers; None if none does."""
    best, below, total = None, 0, sum(counts)
    for rank in range(1, len(counts) // 2 + 1):
        below += counts[rank - 1]
        covered = 1 - Fraction(2 * below, total)
        best = (rank, covered) if covered >= confidence else best
    return best


def walsh_rank(rows: int, confidence: Fraction) -> tuple[int, Fraction] | None:
    """The rank among Walsh averages, and its coverage."""
    return covering_rank(signed_rank_counts(rows), confidence) if rows <= MOST_RANKED_ROWS else None


def median_rank(rows: int, confidence: Fraction) -> tuple[int, Fraction] | None:
    """The rank among order statistics for their median, and its coverage."""
    if rows > MOST_RANKED_ROWS:
        return None
    return covering_rank([comb(rows, below) for below in range(rows + 1)], confidence)


def least_squares(rows: Sequence[Sequence[int]], values: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """The coefficients of a fit, and the diagonal of the inverse of its normal matrix; by elimination, exactly."""
    width = len(rows[0])
    matrix = [
        [Fraction(sum(row[i] * row[k] for row in rows)) for k in range(width)]
        + [Fraction(i == k) for k in range(width)]
        + [sum((row[i] * value for row, value in zip(rows, values, strict=True)), Fraction(0))]
        for i in range(width)
    ]
    for pivot in range(width):
        top = next(i for i in range(pivot, width) if matrix[i][pivot])
        matrix[pivot], matrix[top] = matrix[top], matrix[pivot]
        matrix[pivot] = [one / matrix[pivot][pivot] for one in matrix[pivot]]
        for i in (i for i in range(width) if i != pivot):
            factor = matrix[i][pivot]
            matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[pivot], strict=True)]
    return [line[-1] for line in matrix], [matrix[i][width + i] for i in range(width)]


def settled(contrast: Fraction) -> Fraction:
    """A contrast of logs, or 0 where only the rounding of logs makes it differ."""
    return contrast if abs(contrast) > ROUNDING else Fraction(0)


def effect_of_starts(logs: Sequence[Fraction], arms: str, *, has_drift: bool) -> tuple[Fraction, Fraction, int] | None:
    """The effect of B over A, its variance and degrees of freedom; None where no residual is left."""
    rows = [(1, int(arm == "B"), *([place] if has_drift else [])) for place, arm in enumerate(arms)]
    degrees = len(rows) - len(rows[0]) if rows else 0
    if degrees < 1 or len({*arms}) == 1:
        return None
    solution, inverse = least_squares(rows, logs)
    fitted = [sum((x * b for x, b in zip(row, solution, strict=True)), Fraction(0)) for row in rows]
    squares = sum((settled(log - one) ** 2 for log, one in zip(logs, fitted, strict=True)), Fraction(0))
    return settled(solution[1]), squares / degrees * inverse[1], degrees


def candidate_bound(logs: Sequence[Fraction], arms: str, confidence: Fraction) -> float | None:
    """The one-sided lower bound of the candidates' mean; None where the spread between starts is not known."""
    fit = effect_of_starts(logs, arms, has_drift=len(arms) > FEW_STARTS)
    if fit is None or not fit[1]:
        return None
    rows = [(1, int(arm == "B"), *([place] if len(arms) > FEW_STARTS else [])) for place, arm in enumerate(arms)]
    variance = fit[1] / least_squares(rows, logs)[1][1]
    candidates = [log for log, arm in zip(logs, arms, strict=True) if arm == "B"]
    error = sqrt(variance / len(candidates))
    return float(sum(candidates, Fraction(0)) / len(candidates)) - t_quantile(float(confidence), fit[2]) * error


def t_quantile(share: float, degrees: int) -> float:
    """Student's t by its finite series in the angle, turned around by halving; for shares between 0.5 and 0.9999."""
    low, high = 0.0, pi / 2
    for _ in range(200):
        angle = (low + high) / 2
        low, high = (angle, high) if _central_share(angle, degrees) < 2 * share - 1 else (low, angle)
    return sqrt(degrees) * tan((low + high) / 2)


def _central_share(angle: float, degrees: int) -> float:
    """How much of the distribution lies within sqrt(degrees) * tan(angle) of 0 (Abramowitz and Stegun 26.7.3, 4)."""
    is_odd = degrees % 2
    term = cos(angle) if is_odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + is_odd, degrees - 1, 2):
        term *= (step - 1) / step * cos(angle) ** 2
        total += term
    inner = sin(angle) * total
    return 2 / pi * (angle + inner) if is_odd else inner
