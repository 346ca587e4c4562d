"""Student's t distribution: quantiles and tails, from scipy."""

from functools import cache


@cache
def t_quantile(share: float, degrees: int) -> float:
    """The value below which `share` of the distribution lies."""
    from scipy.special import stdtrit  # noqa: PLC0415 (a fifth of a second, which a run without two arms never needs)

    return float(stdtrit(degrees, share))


def t_tail(value: float, degrees: int) -> float:
    """The share of the distribution above a value: a one-sided p value."""
    from scipy.special import stdtr  # noqa: PLC0415 (see above)

    return float(stdtr(degrees, -value))
