"""Gates on the lines that a start's server printed; each public function that takes a gate is named after a kind."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from .gate_findings import Gate
from .run_reading import Leg, Run, total
from .sealed_files import Doc

NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
Named = dict[str, str]


def treatment(gate: Gate, run: Run, proof: Doc) -> None:
    """The treatment was at work in the candidate alone."""
    for leg in run.legs:
        state = proof["control" if leg.name[0] == "A" else "candidate"]
        if "log" in proof and gate.knows(leg.log, leg.name, "the server log"):
            found = _named(_matching(_lines(leg.log), proof["log"]), proof["log"])
            if state == "absent":
                gate.same(leg.name, "lines of the proof", 0, len(found))
            else:
                groups = state if isinstance(state, dict) else {}
                _check(gate, leg, found, {"pattern": proof["log"], "ranks": proof.get("ranks"), "groups": groups})
            gate.note(leg.name, "lines", proof_lines=len(found))
        name = proof.get("counter", "")
        if name and gate.knows(grown := leg.grown(name, run.off), leg.name, f"counter {name}"):
            after = total(leg.counters[1], name) if leg.counters else None
            is_met = grown > 0 if state == "positive" else not after
            gate.holds(leg.name, f"counter {name} is {state}: {grown}", is_met=is_met)
            gate.note(leg.name, "count", **{name: grown})


def clean_log(gate: Gate, run: Run, said: Doc) -> None:
    """No line of the log says what it must not, and every line is there that must be."""
    engine, is_strict = run.engine, said["unknown_environment"] == "fail"
    for leg in run.legs:
        if gate.knows(leg.log, leg.name, "the server log"):
            lines = _lines(leg.log)
            unknown = _matching(lines, engine["unknown_environment_pattern"])
            gate.note(leg.name, "lines", unknown_environment_lines=len(unknown))
            gate.same(leg.name, "unknown variables", [], unknown[:1] if is_strict else [])
            for pattern in [*engine["deny_patterns"], *(one["pattern"] for one in said["deny"])]:
                gate.same(leg.name, f"lines matching {pattern!r}", [], _matching(lines, pattern)[:1])
            for one in said["require"]:
                own = one.get("control" if leg.name[0] == "A" else "candidate") or {}
                found = _named(_matching(lines, one["pattern"]), one["pattern"])
                _check(gate, leg, found, {**one, "groups": (one.get("groups") or {}) | own})


def _check(gate: Gate, leg: Leg, found: list[Named], wanted: Doc) -> None:
    """How many lines there are, in all or of each rank, and what their named groups hold."""
    pattern, count = f"lines matching {wanted['pattern']!r}", wanted.get("count")
    if (ranks := wanted.get("ranks")) is None:
        gate.same(leg.name, pattern, count or max(len(found), 1), len(found))
    else:
        by_rank = Counter(groups.get("rank", "") for groups in found)
        names = [str(rank) for rank in range(ranks)]
        for name in names:
            gate.same(leg.name, f"{pattern} of rank {name}", count or max(by_rank[name], 1), by_rank[name])
        gate.same(leg.name, f"{pattern} of other ranks", set(), {*by_rank} - {*names})
    groups = {name: str(value) for name, value in wanted["groups"].items()}
    if groups and found:
        seen = {_sorted({name: value for name, value in one.items() if name in groups}) for one in found}
        gate.same(leg.name, f"groups of {pattern}", {_sorted(groups)}, seen)
        for name, value in next(iter(seen)) if len(seen) == 1 else ():
            if NUMBER.fullmatch(value):
                gate.note(leg.name, "as logged", **{name: int(value)})


def _sorted(groups: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(groups.items()))


def _lines(log: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in log.split(b"\n")]


def _matching(lines: Iterable[bytes], pattern: str) -> list[bytes]:
    found = re.compile(pattern.encode())
    return [line for line in lines if found.search(line)]


def _named(lines: Iterable[bytes], pattern: str) -> list[Named]:
    """The named groups of each line that took part in its match."""
    matches = (found for line in lines if (found := re.search(pattern.encode(), line)))
    told = ([(name, value) for name, value in found.groupdict().items() if value is not None] for found in matches)
    return [{name: value.decode("utf-8", "backslashreplace") for name, value in pairs} for pairs in told]
