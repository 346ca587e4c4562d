"""Whether two analyzers said the same: pure, over their verdicts.

Both must give equal gate outcomes and, for every figure that both know by name, equal integers, rationals and digests;
what is no rational (a square root, a logarithm, a bound of an interval) must be equal within 1e-9. How many checks a
gate made is an analyzer's own affair. Figures that only one of them knows are named, not compared.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from pydantic import JsonValue

from labctl.codes import Code
from labctl.errors import Problem
from labctl.records.verdict import Figure, Verdict, VerdictKind

RELATIVE_TOLERANCE = Decimal("1e-9")
IDENTITY = (
    "run_dir", "seal_sha256", "root_sha256", "packet_sha256", "marker_sha256", "campaign", "campaign_class", "kind",
    "attempt", "is_stand_in", "engine",
)  # fmt: skip
REQUIRED = frozenset({"reported_value", "practical_floor", "row_wins", "headline_gain", "exact_rows", "requests"})
Place = tuple[str, str, str]


def disagreements(one: Verdict, other: Verdict) -> tuple[Problem, ...]:
    """Every difference between two verdicts on one run, by gate and figure."""
    names = (one.analyzer.name, other.analyzer.name)
    found = [("verdict", one.verdict.value, other.verdict.value)]
    found += [(name, str(getattr(one, name)), str(getattr(other, name))) for name in IDENTITY]
    sides = [{f"gate {gate.id}": gate.result.value for gate in verdict.gates} for verdict in (one, other)]
    sides = [gates | _row_digests(verdict) for gates, verdict in zip(sides, (one, other), strict=True)]
    for where in sorted(sides[0].keys() | sides[1].keys()):
        found.append((where, sides[0].get(where, "nothing"), sides[1].get(where, "nothing")))
    problems = [_problem(names, where, values) for where, *values in found if values[0] != values[1]]
    return (*problems, *_figure_problems(one, other))


def joint_verdict(verdicts: Sequence[Verdict], failures: tuple[Problem, ...]) -> Verdict:
    """The first verdict where every analyzer bears it out; invalid, with every difference named, where not.

    Args:
        verdicts: those that answered, labctl's own first.
        failures: why the others did not.
    """
    first, *others = verdicts
    differences = (*failures, *(problem for other in others for problem in disagreements(first, other)))
    if not differences:
        return first
    own = first.because if first.verdict is VerdictKind.INVALID else ()
    fields = {name: getattr(first, name) for name in Verdict.model_fields}
    fields |= {"verdict": VerdictKind.INVALID, "because": (*own, *map(str, differences)), "reported_value": None}
    denied = dict.fromkeys(("submission to a board", *first.does_not_authorize))
    fields |= {"authorizes": (), "does_not_authorize": tuple(denied)}
    return Verdict.model_validate({Verdict.model_fields[name].alias or name: one for name, one in fields.items()})


def figures_of_one(verdicts: Sequence[Verdict]) -> dict[str, JsonValue]:
    """Names of the figures that only one of two verdicts holds, by its analyzer; nothing stands against them."""
    names = {verdict.analyzer.name: _names(verdict) for verdict in verdicts}
    both = set.intersection(*names.values())
    return {name: [*sorted(known - both)] for name, known in names.items()} if len(names) > 1 else {}


def _names(verdict: Verdict) -> set[str]:
    return {place[1] for place in _figures(verdict)}


def _row_digests(verdict: Verdict) -> dict[str, str]:
    return {
        f"{row.leg} row {row.row}: prompt, tokens, digest of token ids": (
            f"{row.prompt}, {row.token_count}, {row.token_ids_sha256}"
        )
        for row in verdict.rows
    }


def _figure_problems(one: Verdict, other: Verdict) -> Iterator[Problem]:
    left, right = _figures(one), _figures(other)
    alone = (_names(one) ^ _names(other)) - REQUIRED
    for place in sorted(left.keys() | right.keys()):
        if place[1] not in alone and not _is_equal(left.get(place, ""), right.get(place, "")):
            where = ", ".join(filter(None, place))
            values = [figures.get(place) or "nothing" for figures in (left, right)]
            yield _problem((one.analyzer.name, other.analyzer.name), where, values)


def _figures(verdict: Verdict) -> dict[Place, str]:
    sections: list[tuple[str, tuple[Figure, ...]]] = [(f"gate {gate.id}", gate.figures) for gate in verdict.gates]
    sections += [("start", start.figures) for start in verdict.starts]
    sections += [("row", row.figures) for row in verdict.rows]
    sections += [("effect", verdict.effect)]
    sections += [("verdict", (verdict.reported_value,))] if verdict.reported_value is not None else []
    return {(section, one.name, one.where): one.value for section, figures in sections for one in figures}


def _is_equal(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return "." in one and "." in other and _is_near(Decimal(one), Decimal(other))
    except ArithmeticError:
        return False


def _is_near(one: Decimal, other: Decimal) -> bool:
    exact = Fraction(one), Fraction(other)
    return abs(exact[0] - exact[1]) <= Fraction(RELATIVE_TOLERANCE) * max(abs(exact[0]), abs(exact[1]))


def _problem(names: tuple[str, str], where: str, values: list[str]) -> Problem:
    expected, got = (f"{value} (from {name})" for name, value in zip(names, values, strict=True))
    do = "treat the run as invalid; both answers lie in the analysis"
    return Problem(Code.ANALYZERS_DISAGREE, where, expected, got, do)
