"""What the arms of a comparison gave for the same requests: figures, and no judgement."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from .row_figures import figure, gain_percent
from .run_reading import Leg, Run
from .sealed_files import Doc
from .start_gates import kv_capacity_tokens, resident_bytes

COUNTED = ("drafts", "draft_tokens", "accepted_tokens")
BETWEEN = "B vs A"
Named = dict[str, Fraction]


def comparison_figures(run: Run) -> list[Doc]:
    """The figures of a campaign of class comparison; none of any other, or where an arm has no start."""
    arms = run.arm("A"), run.arm("B")
    if run.prereg["class"] != "comparison" or not all(arms):
        return []
    told = []
    for arm, legs in zip("AB", arms, strict=True):
        units = {"kv_capacity_tokens": "tokens", "resident_bytes": "bytes"}
        told += [figure(name, arm, value, units.get(name, "")) for name, value in _of_arm(run, legs).items()]
    told += [figure(name, BETWEEN, value, "") for name, value in _between(*(_of_arm(run, legs) for legs in arms))]
    return told + _row_figures(arms[0][0], arms[1][0])


def _of_arm(run: Run, legs: Sequence[Leg]) -> Named:
    found: Named = {}
    if sizes := _every(legs, lambda leg: kv_capacity_tokens(run, leg)):
        found["kv_capacity_tokens"] = Fraction(min(sizes))
    if sizes := _every(legs, lambda leg: resident_bytes(run, leg)):
        found["resident_bytes"] = Fraction(sum(sizes), len(sizes))
    return found | _speculation(run, legs)


def _every(legs: Sequence[Leg], size_of: Callable[[Leg], int | None]) -> list[int]:
    sizes = [size_of(leg) for leg in legs]
    return [] if None in sizes else [size for size in sizes if size is not None]


def _speculation(run: Run, legs: Sequence[Leg]) -> Named:
    if any(leg.counters is None for leg in legs):
        return {}
    sums, places = dict.fromkeys(COUNTED, Fraction(0)), dict[str, Fraction]()
    for leg in legs:
        before, after = leg.counters or ({}, {})
        grown = {name: leg.grown(name, run.off) for name in COUNTED if name in {*before, *after}}
        if None in grown.values() or len(grown) < len(COUNTED):
            continue
        sums = {name: value + (grown[name] or 0) for name, value in sums.items()}
        for sign, counters in ((-1, before), (1, after)):
            for labels, value in counters.get("accepted_per_position", {}).items():
                place = dict(labels).get("position", "")
                places[place] = places.get(place, Fraction(0)) + sign * value
    drafts, proposed, accepted = sums.values()
    found = {"acceptance_rate": accepted / proposed} if proposed and drafts else {}
    if drafts:
        found |= {"accepted_per_cycle": accepted / drafts, "emitted_per_cycle": 1 + accepted / drafts}
        ordered = sorted(places, key=lambda place: (len(place), place))
        found |= {f"survival_{at}": places[place] / drafts for at, place in enumerate(ordered)}
    return found


def _between(control: Named, candidate: Named) -> list[tuple[str, Fraction]]:
    both = {name: (control[name], candidate[name]) for name in control.keys() & candidate.keys()}
    told = []
    if (sizes := both.get("kv_capacity_tokens")) and sizes[0]:
        told.append(("kv_capacity_ratio", sizes[1] / sizes[0]))
    if (sizes := both.get("resident_bytes")) and sizes[0]:
        told.append(("resident_bytes_difference", sizes[1] - sizes[0]))
        told.append(("resident_bytes_gain", gain_percent(sizes[1], sizes[0])))
    if rates := both.get("acceptance_rate"):
        told.append(("acceptance_rate_difference", rates[1] - rates[0]))
    return told


def _row_figures(control: Leg, candidate: Leg) -> list[Doc]:
    rows, others = control.rows, candidate.rows
    told, differing = list[Doc](), abs(len(rows) - len(others))
    for row, other in zip(rows, others, strict=False):
        ids, against = row.told[0], other.told[0]
        differing += row.told[:3] != other.told[:3]
        if ids != against and isinstance(ids, list) and isinstance(against, list):
            same = zip(ids, against, strict=False)
            at = next((at for at, (a, b) in enumerate(same) if a != b), min(len(ids), len(against)))
            told.append(figure("first_difference", f"row {row.number}", at, "token, from 0"))
    return [*told, figure("differing_rows", BETWEEN, differing, "rows")]
