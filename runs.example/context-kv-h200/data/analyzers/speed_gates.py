"""Gates on speed, and the effect; each public function that takes a gate is named after a kind."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import exp
from typing import Any

from .exact_statistics import candidate_bound, log_of, sign_test_p
from .gate_findings import Gate, compare
from .row_figures import figure, gain_percent, headline, quantile
from .run_reading import Leg, Run
from .sealed_files import Doc

CONFIDENCE = Fraction(95, 100)


def _pairs(run: Run, metric: str) -> Iterator[tuple[str, int, bool, dict[str, Any]]]:
    for control, candidate in zip(run.arm("A"), run.arm("B"), strict=False):
        before, after = ([row.metrics.get(metric) for row in leg.rows] for leg in (control, candidate))
        both = [(a, b) for a, b in zip(before, after, strict=False) if a is not None and b is not None]
        heads = [one for leg in (candidate, control) if (one := headline(leg.rows, metric)) is not None]
        count, found = max(len(before), len(after)), Doc()
        found["row_wins"] = sum(b > a for a, b in both)  # a tie is a loss, and so is a row that does not count
        found |= {"headline_gain": gain_percent(heads[0], heads[1])} if len(heads) > 1 else {}
        found |= {"sign_test_p": sign_test_p(found["row_wins"], count)} if count else {}
        gains = [gain_percent(b, a) for a, b in both]
        found |= {"median_paired_gain": quantile(gains)} if gains and len(gains) == count else {}
        yield f"{candidate.name} vs {control.name}", count, None not in before and len(before) == count, found


def effect(run: Run) -> list[Doc]:
    """Gains, by pair and overall."""
    found = [figure(key, pair[0], value, "") for pair in _pairs(run, run.metric) for key, value in pair[3].items()]
    for control, candidate in zip(run.arm("A"), run.arm("B"), strict=False):
        found += _cycles(run, control, candidate)
    heads = [[headline(leg.rows, run.metric) for leg in run.arm(arm)] for arm in "BA"]
    if all(heads) and None not in heads[0] + heads[1]:
        gain = gain_percent(*(sum((one for one in arm if one), Fraction(0)) / len(arm) for arm in heads))
        found.append(figure("gain_of_mean_headlines", "", gain, "percent"))
    return found


def _cycles(run: Run, control: Leg, candidate: Leg) -> Iterator[Doc]:
    where = f"{candidate.name} vs {control.name}"
    for name, above, below, times in (
        ("cycle_saving", "request_decode_time_sum", "drafts", -1000),
        ("acceptance_drift", "accepted_tokens", "draft_tokens", 1),
    ):
        sides = [(leg.grown(above, run.off), leg.grown(below, run.off)) for leg in (control, candidate)]
        ratios = [one / other for one, other in sides if one is not None and other]
        if len(ratios) == len(sides):
            yield figure(name, where, times * (ratios[1] - ratios[0]), "ms or share")


def pair(gate: Gate, run: Run, said: Doc) -> None:
    """Every pair wins by what was registered."""
    pairs = list(_pairs(run, said["metric"]))
    gate.knows(pairs or None, "run", "a pair of starts")
    for name, _, is_sound, values in pairs:
        gate.note(name, "", **values)
        if gate.knows(is_sound or None, name, f"{said['metric']} of a control row"):
            for key in ("row_wins", "headline_gain_percent", "median_paired_gain_percent"):
                floor, value = said[f"min_{key}"], values.get(key.removesuffix("_percent"))
                is_met = floor is None or (value is not None and value >= Fraction(floor))
                gate.holds(name, f"{key} of at least {floor}: {value}", is_met=is_met)


def control_near(gate: Gate, run: Run, said: Doc) -> None:
    """The control is as fast as it was known to be."""
    reference, within = Fraction(said["reference"]), Fraction(said["within_percent"])
    metric = said.get("metric", run.metric)
    for leg in run.arm("A"):
        if gate.knows(speed := headline(leg.rows, metric), leg.name, metric):
            is_near = abs(speed - reference) * 100 <= reference * within
            gate.holds(leg.name, f"headline {float(speed)} within {within} % of {reference}", is_met=is_near)
            gate.note(leg.name, "tokens/s", **{metric: speed})
            gate.note(leg.name, "percent", distance=gain_percent(speed, reference))


def decision(gate: Gate, run: Run, said: Doc) -> None:
    """The slower candidate start exceeds the floor."""
    rows = {leg.name: leg.rows for leg in run.legs}
    speeds = {name: headline(rows.get(name, []), said["headline"]) for name in run.order}
    known = [(name[0], speed) for name, speed in speeds.items() if gate.knows(speed, name, said["headline"])]
    candidates, controls = ([speed for one, speed in known if one == arm] for arm in "BA")
    if gate.gaps or not gate.knows((candidates and controls) or None, "run", "a start of each arm"):
        return
    reported, slack = min(candidates), Fraction(0)
    gate.note("", "tokens/s", lower_candidate_minus_higher_control=reported - max(controls))
    if said["reported_value"] == "confidence_bound":
        bound = candidate_bound([log_of(speed) for _, speed in known], "".join(arm for arm, _ in known), CONFIDENCE)
        if not gate.knows(bound, "run", "a spread between starts of one arm"):
            return
        reported = Fraction(exp(bound))
        slack = reported / 10**9
    gate.figures.append(_reported_figure(reported, is_exact=not slack))
    gate.holds("run", "a reported value above 0", is_met=reported > 0)
    if said["record_to_beat"] is not None:
        floor = Fraction(said["record_to_beat"]) * (100 + Fraction(said["floor_over_record_percent"] or 0)) / 100
        gate.note("", "tokens/s", practical_floor=floor)
        if not slack or gate.knows(abs(reported - floor) > slack or None, "run", "a distance from the practical floor"):
            gate.holds("run", f"{float(reported)} above the practical floor {float(floor)}", is_met=reported > floor)


def _reported_figure(value: Fraction, *, is_exact: bool) -> Doc:
    told = figure("reported_value", "", value, "tokens/s")
    return told if is_exact else {**told, "value": f"{Decimal(repr(float(value))):f}"}


def is_exact_within_arms(run: Run) -> bool:
    """Whether all starts of each arm answered alike."""
    gate = Gate("within_arms", "within_arms")
    for legs in filter(None, (run.arm("A"), run.arm("B"))):
        compare(gate, legs[1:], [row.told for row in legs[0].rows])
    return not gate.misses
