"""Gates over whole starts, and the figures of what may be concluded; gates are functions named after their kinds."""

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from math import comb, sqrt

from . import exact_statistics as exact
from .gate_findings import Gate
from .row_figures import figure, gain_percent, headline
from .run_reading import Run
from .sealed_files import Doc

TOLERANCE = 1e-9
CONFIDENCE = Fraction(95, 100)
Rates = list[Fraction | None]


def _rates(run: Run, name: str) -> Rates:
    rows = next((leg.rows for leg in run.legs if leg.name == name), [])
    return [row.metrics.get(run.metric) for row in rows]


def _headlines(run: Run) -> tuple[dict[str, Fraction], list[str]]:
    """The headline of every registered start, and the starts that lack one."""
    rows = {leg.name: leg.rows for leg in run.legs}
    found = {name: headline(rows.get(name, []), run.metric) for name in run.order}
    lacking = [name for name, value in found.items() if value is None]
    lacking += [f"every start of arm {arm}" for arm in "AB" if not any(name[0] == arm for name in run.order)]
    return {name: value for name, value in found.items() if value is not None}, lacking


def _known(gate: Gate, run: Run) -> dict[str, Fraction] | None:
    headlines, lacking = _headlines(run)
    gate.gaps += [f"{name}: {run.metric} is absent" for name in lacking]
    return None if lacking else headlines


def _side(headlines: dict[str, Fraction], arm: str) -> list[Fraction]:
    return [value for name, value in headlines.items() if name[0] == arm]


def _planned(run: Run) -> Fraction | None:
    power = run.prereg["power"]
    return None if power is None else Fraction(power["planned_effect_percent"])


def drift(gate: Gate, run: Run, said: Doc) -> None:
    """The first and the last start of each arm lie within a bound of each other."""
    planned, own = _planned(run), said.get("max_percent")
    limit = Fraction(own) if own is not None else planned and min(Fraction(1), planned / 2)
    headlines = _known(gate, run)
    if not gate.knows(limit, "run", "a bound of the drift") or headlines is None:
        return
    for arm in "AB":
        ends = _side(headlines, arm)[0], _side(headlines, arm)[-1]
        moved = gain_percent(max(ends), min(ends))
        gate.note(f"arm {arm}", "percent", start_drift=moved)
        gate.holds(f"arm {arm}", f"starts {float(moved)} % apart, at most {float(limit)} %", is_met=moved <= limit)


def separation(gate: Gate, run: Run, said: Doc) -> None:
    """Every candidate start is faster than every control start, by a margin."""
    planned, own = _planned(run), said.get("margin_percent")
    margin = Fraction(own) if own is not None else planned and planned / 2
    headlines = _known(gate, run)
    if not gate.knows(margin, "run", "a margin of the separation") or headlines is None:
        return
    gap = gain_percent(min(_side(headlines, "B")), max(_side(headlines, "A")))
    gate.note("", "percent", separation=gap)
    gate.holds("run", f"{float(gap)} % between the nearest starts, more than {float(margin)} %", is_met=gap > margin)


def _row_effects(run: Run) -> tuple[list[Fraction], int] | None:
    """A ratio for each prompt whose log, over the divisor, is the mean gain of B over A; None where a row lacks."""
    rates = {name: _rates(run, name) for name in run.order}
    counts = {len(one) for one in rates.values()}
    if _headlines(run)[1] or len(counts) != 1:
        return None
    sizes = {arm: sum(name[0] == arm for name in rates) for arm in "AB"}
    ratios = []
    for values in zip(*rates.values(), strict=True):
        named = [(name[0], value) for name, value in zip(rates, values, strict=True) if value is not None]
        top, bottom = (exact.product(value for arm, value in named if arm == side) for side in "BA")
        ratios.append(top ** sizes["A"] / bottom ** sizes["B"])
    return ratios, sizes["A"] * sizes["B"]


def _wins(run: Run) -> Iterator[tuple[str, int, int]]:
    for control, candidate in zip(run.arm("A"), run.arm("B"), strict=False):
        before, after = _rates(run, control.name), _rates(run, candidate.name)
        both = zip(before, after, strict=False)
        wins = sum(a is not None and b is not None and b > a for a, b in both)
        yield f"{candidate.name} vs {control.name}", wins, max(len(before), len(after))


def consistency(gate: Gate, run: Run, said: Doc) -> None:
    """Within these starts the candidate is faster on the prompts."""
    effects = _row_effects(run) if _known(gate, run) is not None else None
    if not gate.knows(effects, "run", "an effect in every row"):
        return
    for name, wins, rows in _wins(run):
        gate.note(name, "rows", row_wins=wins)
        gate.holds(
            name, f"{wins} of {rows} row wins, at least {said['min_row_wins']}", is_met=wins >= said["min_row_wins"]
        )
    ratios, divisor = effects
    found = exact.walsh_rank(len(ratios), Fraction(said["confidence"]))
    if gate.knows(found, "run", f"an interval of confidence {said['confidence']} from {len(ratios)} rows"):
        gate.note("", "rank", hodges_lehmann_rank=found[0])
        lower = exact.walsh_averages([exact.log_of(ratio) / divisor for ratio in ratios])[found[0] - 1]
        gate.holds("run", f"lower end of the Hodges-Lehmann interval {float(lower)} above 0", is_met=lower > 0)


def _bound(gate: Gate, run: Run, said: Doc) -> tuple[float, float] | None:
    """The effect on logs and how far its one-sided bound lies from it, from the spread between starts."""
    headlines = _known(gate, run)
    if headlines is None:
        return None
    logs, arms = [exact.log_of(value) for value in headlines.values()], "".join(name[0] for name in headlines)
    fit = exact.effect_of_starts(logs, arms, has_drift=len(logs) > exact.FEW_STARTS)
    spread = fit[1] or None if fit else None
    if fit is None or not gate.knows(spread, "run", "a spread between starts of one arm"):
        gate.knows(fit, "run", "a start that repeats another")
        return None
    return float(fit[0]), exact.t_quantile(float(Fraction(said["confidence"])), fit[2]) * sqrt(spread)


def _above(gate: Gate, told: tuple[float, float], limit: float) -> None:
    bound = told[0] - told[1]
    is_far = abs(bound - limit) > TOLERANCE * (abs(told[0]) + told[1] + abs(limit))
    if gate.knows(is_far or None, "run", "a distance of the bound from its limit"):
        gate.holds("run", f"lower bound {bound} above {limit}, of logs", is_met=bound > limit)


def effect(gate: Gate, run: Run, said: Doc) -> None:
    """The lower bound of the effect is above the margin."""
    if (told := _bound(gate, run, said)) is not None:
        _above(gate, told, float(exact.log_of(1 + Fraction(said["margin_percent"]) / 100)))


def equivalence(gate: Gate, run: Run, said: Doc) -> None:
    """Both bounds of the effect lie within the limit."""
    if (told := _bound(gate, run, said)) is not None:
        limit = -float(exact.log_of(1 + Fraction(said["within_percent"]) / 100))
        _above(gate, told, limit)
        _above(gate, (-told[0], told[1]), limit)


def conclusions(run: Run) -> list[Doc]:
    """Exact tests over the run, and the estimates that need a logarithm at most."""
    headlines, lacking = _headlines(run)
    return [] if lacking else [*_start_figures(headlines, run), *_row_figures(run)]


def _log_figure(name: str, log: Fraction) -> Doc:
    log = exact.settled(log)
    value = exact.LOG.divide(Decimal(100 * log.numerator), Decimal(log.denominator))
    shown = Context(prec=12).plus(value).normalize()
    return {"name": name, "where": "", "value": f"{value:f}", "decimal": f"{shown:f}", "unit": "log percent"}


def _start_figures(headlines: dict[str, Fraction], run: Run) -> Iterator[Doc]:
    speeds, arms = list(headlines.values()), "".join(name[0] for name in headlines)
    fit = exact.effect_of_starts([exact.log_of(one) for one in speeds], arms, has_drift=len(speeds) > exact.FEW_STARTS)
    if fit is not None:
        yield _log_figure("effect_log", fit[0])
    swapped = arms.translate(str.maketrans("AB", "BA"))
    if run.prereg["schedule"].get("mirror"):
        observed = exact.product(_side(headlines, "B"))
        drawn = [exact.product(v for v, arm in zip(speeds, one, strict=True) if arm == "B") for one in (arms, swapped)]
        count, total = sum(one >= observed for one in drawn), len(drawn)
    else:
        count = exact.assignment_count(speeds, arms)
        total = comb(len(arms), arms.count("B"))
    yield figure("start_permutation_count", "", count, "")
    yield figure("start_permutation_p", "", Fraction(count, total), "")
    yield figure("start_permutation_floor", "", Fraction(1, total), "")


def _row_figures(run: Run) -> Iterator[Doc]:
    effects = _row_effects(run)
    if effects is None or not effects[0]:
        return
    ratios, divisor = effects
    if (count := exact.sign_flip_count(ratios)) is not None:
        yield figure("sign_flip_count", "", count, "")
        yield figure("sign_flip_p", "", Fraction(count, 2 ** len(ratios)), "")
    logs = sorted(exact.log_of(ratio) / divisor for ratio in ratios)
    ways = {"median_row": (logs, exact.median_rank(len(logs), CONFIDENCE))}
    if len(logs) <= exact.MOST_RANKED_ROWS:
        ways["hodges_lehmann"] = (exact.walsh_averages(logs), exact.walsh_rank(len(logs), CONFIDENCE))
    for name, (ordered, covered) in ways.items():
        yield _log_figure(f"{name}_log", exact.middle_of(ordered))
        if covered is not None:
            yield _log_figure(f"{name}_lower_log", ordered[covered[0] - 1])
            yield _log_figure(f"{name}_upper_log", ordered[-covered[0]])
            yield figure(f"{name}_coverage", "", covered[1], "")
