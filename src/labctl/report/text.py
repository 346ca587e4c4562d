"""Step 9, report: a verdict as Markdown, the verdict first; every figure comes from it and none is computed here."""

from collections.abc import Iterable, Sequence

from labctl.records.verdict import Figure, GateResult, StartHeadline, Verdict
from labctl.report.escape import markdown, plain

SHOWN_MISSES = 10
EXACTNESS_KINDS = ("exact_tokens", "cross_leg_exact")
START_COLUMNS = ("mean", "sample_sd", "p10", "minimum", "maximum", "first_row", "ttft_median", "coalesced_tokens")
ROW_COLUMNS = ("ttft", "inter_event_latency_p50", "inter_event_latency_p99", "inter_event_latency_max")
MARKS = {GateResult.PASSED: "passed", GateResult.FAILED: "**failed**", GateResult.NOT_EVALUATED: "*not evaluated*"}


def render_report(verdict: Verdict) -> str:
    """The whole report as Markdown."""
    sections = (
        _opening(verdict),
        _gates(verdict),
        _misses(verdict),
        _starts(verdict),
        _effect(verdict),
        _rows(verdict),
        _follow_ups(verdict),
        _verification(verdict),
    )
    return "\n".join(line for section in sections for line in section) + "\n"


def summarize(verdict: Verdict) -> tuple[str, ...]:
    """The verdict in a few lines for a terminal."""
    counts = {result: sum(gate.result is result for gate in verdict.gates) for result in GateResult}
    lines = [
        f"verdict: {verdict.verdict.value} ({verdict.campaign}, attempt {verdict.attempt}, "
        f"analyzer {verdict.analyzer.standing})",
        *(f"  because {reason}" for reason in verdict.because[:5]),
        f"gates: {counts[GateResult.PASSED]} passed, {counts[GateResult.FAILED]} failed, "
        f"{counts[GateResult.NOT_EVALUATED]} not evaluated",
    ]
    if verdict.reported_value is not None:
        lines.append(f"reported value: {verdict.reported_value.decimal} {verdict.reported_value.unit}")
    lines += [f"{one.name} ({one.where or 'run'}): {one.decimal} {one.unit}" for one in verdict.effect]
    lines += [f"note: {warning}" for warning in verdict.warnings]
    return tuple(plain(line) for line in lines)


def _opening(verdict: Verdict) -> list[str]:
    lines = [
        f"# {markdown(verdict.campaign)}: {markdown(verdict.verdict.value)}",
        "",
        *_bullets("Because", verdict.because),
    ]
    if verdict.is_stand_in:
        lines += [
            "**The service was labctl's embedded endpoint: a stand-in for rehearsals, not a language model.**",
            "",
        ]
    facts = [
        ("class", verdict.campaign_class.value),
        ("packet", f"{verdict.kind}, attempt {verdict.attempt}, `{verdict.packet_sha256}`"),
        ("engine", markdown(verdict.engine)),
        ("analyzer", f"{verdict.analyzer.name} ({verdict.analyzer.standing}), `{verdict.analyzer.sha256}`"),
    ]
    if verdict.reported_value is not None:
        facts.insert(0, ("reported value", f"**{_shown(verdict.reported_value)}** (`{verdict.reported_value.value}`)"))
    if verdict.expectation:
        facts.append(("expectation", markdown(verdict.expectation)))
    lines += [*_table(("", ""), facts), ""]
    return lines + _bullets("Doubts", verdict.warnings)


def _gates(verdict: Verdict) -> list[str]:
    rows = [(f"`{gate.id}`", MARKS[gate.result], markdown(gate.reason)) for gate in verdict.gates]
    return ["## Gates", "", *_table(("gate", "result", "why"), rows), "", *_gate_figures(verdict)]


def _gate_figures(verdict: Verdict) -> list[str]:
    rows = [
        (f"`{gate.id}`", one.where or "run", f"`{one.name}`", one.decimal, one.unit)
        for gate in verdict.gates
        for one in gate.figures
    ]
    return ["### Figures of the gates", "", *_table(("gate", "where", "figure", "value", "unit"), rows), ""]


def _misses(verdict: Verdict) -> list[str]:
    lines: list[str] = []
    for gate in verdict.gates:
        if gate.misses:
            kept = gate.misses[:SHOWN_MISSES]
            title = f"### What did not hold in `{gate.id}`: the first {len(kept)} of {gate.miss_count}"
            rows = [tuple(map(markdown, (miss.where, miss.what, miss.expected, miss.observed))) for miss in kept]
            lines += [title, "", *_table(("where", "what", "expected", "observed"), rows), ""]
    return lines


def _starts(verdict: Verdict) -> list[str]:
    if not verdict.starts:
        return []
    named = [(start, {one.name: one for one in start.figures}) for start in verdict.starts]
    names = list(dict.fromkeys(name for _, figures in named for name in figures if "_rate" in name))
    columns = [*names, *START_COLUMNS]
    rows = [(start.leg, str(start.rows), *(_cell(figures.get(name)) for name in columns)) for start, figures in named]
    header = ("start", "rows", *(f"`{name}`" for name in columns))
    return ["## Starts", "", _headline_note(verdict.starts), "", *_table(header, rows), ""]


def _headline_note(starts: Sequence[StartHeadline]) -> str:
    rows = max((start.rows for start in starts), default=0)
    return f"The headline of a start is the median over its {rows} rows; rates in tokens/s, times in ns."


def _effect(verdict: Verdict) -> list[str]:
    if not verdict.effect:
        return []
    exactness = [gate for gate in verdict.gates if gate.kind in EXACTNESS_KINDS]
    is_diagnostic = any(gate.result is not GateResult.PASSED for gate in exactness)
    note = ["Exactness did not pass: these figures are diagnostic only.", ""] if is_diagnostic else []
    rows = [(one.where or "run", f"`{one.name}`", one.decimal, one.unit, f"`{one.value}`") for one in verdict.effect]
    return ["## Pairs", "", *note, *_table(("pair", "figure", "value", "unit", "exact"), rows), ""]


def _rows(verdict: Verdict) -> list[str]:
    if not verdict.rows:
        return []
    named = [(row, {one.name: one for one in row.figures}) for row in verdict.rows]
    rates = list(dict.fromkeys(name for _, figures in named for name in figures if "rate" in name))
    columns = [*rates, *ROW_COLUMNS]
    rows = [
        (row.leg, str(row.row), row.prompt, str(row.token_count), *(_cell(figures.get(name)) for name in columns))
        for row, figures in named
    ]
    header = ("start", "row", "prompt", "tokens", *(f"`{name}`" for name in columns))
    note = "Times in ns; an event's gap is measured only where neither event shared its read with another."
    return ["## Rows", "", note, "", *_table(header, rows), ""]


def _follow_ups(verdict: Verdict) -> list[str]:
    return [
        "## What follows",
        "",
        *_bullets("This verdict authorizes", verdict.authorizes or ("nothing",)),
        *_bullets("It does not authorize", verdict.does_not_authorize),
    ]


def _verification(verdict: Verdict) -> list[str]:
    return [
        "## How to verify without labctl",
        "",
        "```sh",
        f"cd {verdict.run_dir}",
        "sha256sum -c --strict manifest-sha256.txt      # every file of the run",
        "sha256sum -c --strict tagmanifest-sha256.txt   # the manifest itself",
        "sha256sum manifest-sha256.txt seal.json",
        "```",
        "",
        f"- `manifest-sha256.txt`, the root digest: `{verdict.root_sha256}`",
        f"- `seal.json`: `{verdict.seal_sha256}`",
        f"- the marker, `data/packet/marker.copy.json`: `{verdict.marker_sha256}`",
        "- every rate comes from `data/legs/*/wire/NN.bin` (the received bytes) and `NN.reads.jsonl` (their stamps)",
    ]


def _bullets(title: str, lines: Iterable[str]) -> list[str]:
    listed = [f"- {markdown(line)}" for line in lines]
    return [f"{title}:", "", *listed, ""] if listed else []


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = "|".join("---" for _ in header)
    return [f"| {' | '.join(header)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _shown(one: Figure) -> str:
    return f"{one.decimal} {one.unit}"


def _cell(one: Figure | None) -> str:
    return "" if one is None else one.decimal
