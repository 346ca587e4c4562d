"""The gates of a report: result, key figures and reason of each, and what did not hold."""

from collections.abc import Iterable

from labctl.records.verdict import Figure, GateOutcome, GateResult, Verdict
from labctl.report.blocks import table
from labctl.report.escape import markdown
from labctl.report.numbers import short, unit

SHOWN_MISSES = 10
MARKS = {GateResult.PASSED: "passed", GateResult.FAILED: "**failed**", GateResult.NOT_EVALUATED: "*not evaluated*"}
KEY_FIGURES = {
    "cold": ("requests",),
    "clean_log": ("unknown_environment_lines",),
    "exact_tokens": ("exact_rows", "degenerate_rows"),
    "cross_leg_exact": ("exact_rows",),
    "accounting": ("acceptance_rate", "emitted_per_cycle", "cycle_ms"),
    "decision": ("reported_value", "practical_floor"),
    "pair": ("headline_gain", "median_paired_gain", "row_wins"),
    "control_near": ("distance",),
    "consistency": ("row_wins",),
}
"""What the table of gates shows; of a kind that is not here, everything."""


def gates(verdict: Verdict) -> list[str]:
    """Every gate with its key figures."""
    rows = [
        (f"`{gate.id}`", MARKS[gate.result], "; ".join(_key_figures(gate)), markdown(gate.reason))
        for gate in verdict.gates
    ]
    return ["## Gates", "", *table(("gate", "result", "key figures", "why"), rows), ""]


def misses(verdict: Verdict) -> list[str]:
    """What did not hold, gate by gate, both sides of each check."""
    lines: list[str] = []
    for gate in verdict.gates:
        if gate.misses:
            kept = gate.misses[:SHOWN_MISSES]
            title = f"### What did not hold in `{gate.id}`: the first {len(kept)} of {gate.miss_count}"
            rows = [tuple(map(markdown, (miss.where, miss.what, miss.expected, miss.observed))) for miss in kept]
            lines += [title, "", *table(("where", "what", "expected", "observed"), rows), ""]
    return lines


def _key_figures(gate: GateOutcome) -> Iterable[str]:
    shown = [one for one in gate.figures if one.name in KEY_FIGURES.get(gate.kind, (one.name,))]
    for name in dict.fromkeys(one.name for one in shown):
        yield f"`{name}` {_listed([one for one in shown if one.name == name])}"


def _listed(named: list[Figure]) -> str:
    values = ", ".join(f"{one.where} {short(one)}".strip() for one in named)
    return f"{values} {unit(named[0])}"
