"""The extents of declared shapes: products of integers and named dimensions; pure, for rules and for analyzers."""

from collections.abc import Mapping

from labctl.prereg.component_model import Term


def factors_of(term: Term) -> tuple[int | str, ...]:
    """The factors of an extent: integers, and names of dimensions."""
    if isinstance(term, int):
        return (term,)
    return tuple(int(factor) if factor.isdigit() else factor for factor in term.split("*"))


def extent_of(term: Term, dimensions: Mapping[str, int]) -> int | None:
    """The extent as a number, or None where a dimension is not known."""
    extent = 1
    for factor in factors_of(term):
        known = factor if isinstance(factor, int) else dimensions.get(factor)
        if known is None:
            return None
        extent *= known
    return extent
