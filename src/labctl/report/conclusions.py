"""What may be concluded, in words: what rests on the spread between starts, what holds within them, and the limits."""

import re
from collections.abc import Iterator

from labctl.prereg.designs import COIN
from labctl.records.verdict import Figure, Verdict
from labctl.report.blocks import bullets
from labctl.report.numbers import short, signed

DESIGN = re.compile(r"[0-9]+ starts, ")
INTERVALS = {"no_drift": "drift left out", "drift_adjusted": "a linear drift taken out"}
BETWEEN = "Between starts, on which alone a claim about the treatment rests"
WITHIN = "Within these starts: consistency over the prompts, which says nothing of other starts"
LIMITS = "What this design cannot separate"
FIXED = "the order was fixed and not drawn, so this p is descriptive only"
DRAWN = "over the order and its mirror, between which a sealed coin chose"
ALONE = (
    "Standard deviations, t and the intervals between starts are computed by labctl alone; the second analyzer "
    "computes everything else here again, and judges every gate."
)


def conclusions(verdict: Verdict) -> list[str]:
    """The section; nothing where there was nothing to compare."""
    over_run = {one.name: one for one in verdict.effect if not one.where}
    if "start_permutation_p" not in over_run:
        return []
    limits = [warning for warning in verdict.warnings if DESIGN.match(warning)]
    return [
        "## What may be concluded",
        "",
        *bullets(BETWEEN, (*_between(over_run), _permutation(over_run, limits))),
        *bullets(WITHIN, (*_wins(verdict), *_within(over_run))),
        *bullets(LIMITS, limits),
        *([ALONE, ""] if "effect_log" in over_run else []),
    ]


def _between(found: dict[str, Figure]) -> Iterator[str]:
    if "effect_percent" in found:
        spread = f"starts of one arm vary by {short(found['start_sd_log'])} log percent (standard deviation, "
        yield f"effect {signed(found['effect_percent'])}; {spread}{short(found['start_degrees'])} degrees of freedom)"
    for name, said in INTERVALS.items():
        if f"{name}_lower_percent" in found and f"{name}_upper_percent" in found:
            yield f"95 % interval, {said}: {_range(found, name)}"
    if "effect_bound_percent" in found:
        bound, p = signed(found["effect_bound_percent"]), short(found["effect_p"])
        yield f"at least {bound} with 95 % confidence (one-sided); p of no effect {p}"


def _permutation(found: dict[str, Figure], limits: list[str]) -> str:
    count, share, floor = (found[f"start_permutation_{part}"] for part in ("count", "p", "floor"))
    draw = DRAWN if any(COIN in limit for limit in limits) else FIXED
    return (
        f"permutation of the arms over the starts: {count.value} {count.unit} do as well, p {short(share)} ({draw}); "
        f"no result of this design can have a p below {short(floor)}"
    )


def _wins(verdict: Verdict) -> Iterator[str]:
    p_values = {one.where: one for one in verdict.effect if one.name == "sign_test_p"}
    for one in verdict.effect:
        if one.name == "row_wins" and one.where in p_values:
            yield f"{one.where}: {one.value} {one.unit} won, sign test p {short(p_values[one.where])}"


def _within(found: dict[str, Figure]) -> Iterator[str]:
    if "sign_flip_p" in found:
        count = found["sign_flip_count"]
        said = f"sign flips of the prompts over all starts: {count.value} {count.unit} do as well"
        yield f"{said}, p {short(found['sign_flip_p'])}"
    for name, said in (("hodges_lehmann", "Hodges-Lehmann estimate"), ("median_row", "median over the prompts")):
        if f"{name}_percent" in found:
            coverage = found.get(f"{name}_coverage")
            interval = (
                f", {_percent(coverage)} interval {_range(found, name)}" if coverage else "; too few rows to bound it"
            )
            yield f"{said} {signed(found[f'{name}_percent'])}{interval}"


def _range(found: dict[str, Figure], name: str) -> str:
    return f"{signed(found[f'{name}_lower_percent'])} to {signed(found[f'{name}_upper_percent'])}"


def _percent(share: Figure) -> str:
    return f"{float(share.decimal) * 100:.4g} %"
