"""The top of a report: what came out, by how much, and how far it can be trusted, before any detail."""

from labctl.prereg.field_types import MetricId
from labctl.records.verdict import Figure, GateResult, StartHeadline, Verdict
from labctl.report.blocks import bullets, table
from labctl.report.cards import card_table
from labctl.report.escape import markdown
from labctl.report.numbers import short, signed, unit

SHOWN_REASONS = 10
EXACTNESS_KINDS = (
    *("exact_within_arms", "exact_text"),
    *("exact_tokens", "cross_leg_exact", "long_then_next", "rollover", "moving_difference", "degenerate_output"),
)
RUN_GAIN = "gain_of_mean_headlines"
PAIR_GAIN = "headline_gain"
ROW_WINS = "row_wins"
SPREADS = {"control_spread": "controls", "candidate_spread": "candidates"}
START_HEADER = ("start", "headline, tokens/s", "first row, tokens/s", "TTFT, ms", "coalesced tokens, %", "rows")
METRICS = frozenset(metric.value for metric in MetricId)


def opening(verdict: Verdict) -> list[str]:
    """The verdict, the gain, the starts, the doubts, and what was judged by whom."""
    lines = [f"# {markdown(verdict.campaign)}: {markdown(verdict.verdict.value)}", ""]
    for fact in (*gain_lines(verdict), *_value_lines(verdict)):
        lines += [f"**{markdown(fact)}**", ""]
    lines += bullets("Because", reasons(verdict))
    lines += [*_start_table(verdict), *card_table(verdict)]
    if verdict.is_stand_in:
        lines += ["**The service was labctl's embedded endpoint: a stand-in, not a language model.**", ""]
    return [*lines, *bullets("Doubts", verdict.warnings), *_facts(verdict)]


def gain_lines(verdict: Verdict) -> list[str]:
    """The gain over the run and of each pair, and what it is worth where exactness did not pass."""
    over_run = [f"{signed(one)} over the run" for one in verdict.effect if one.name == RUN_GAIN]
    by_pair = [f"{one.where} {signed(one)}" for one in verdict.effect if one.name == PAIR_GAIN]
    if not over_run and not by_pair:
        return []
    wins = [f"{one.where} {short(one)} {one.unit}" for one in verdict.effect if one.name == ROW_WINS]
    gain = f"gain: {'; '.join([*over_run, ', '.join(by_pair)])}"
    won = [f"rows won: {', '.join(wins)}"] if wins else []
    return [gain, *won, *(["exactness did not pass: these figures are diagnostic only"] * _is_diagnostic(verdict))]


def start_headline(start: StartHeadline) -> Figure | None:
    """The headline among a start's figures."""
    return next((one for one in start.figures if one.name in METRICS), None)


def spread_line(verdict: Verdict) -> str | None:
    """How far the starts of each arm lie apart; None where no arm has two."""
    shown = [f"{SPREADS[one.name]} {short(one)} %" for one in verdict.effect if one.name in SPREADS]
    return f"spread between the starts of an arm: {', '.join(shown)}" if shown else None


def reasons(verdict: Verdict) -> list[str]:
    """The first reasons, and how many more there are."""
    more = len(verdict.because) - SHOWN_REASONS
    return [*verdict.because[:SHOWN_REASONS], *([f"and {more} more, in verdict.json"] if more > 0 else [])]


def _is_diagnostic(verdict: Verdict) -> bool:
    exactness = [gate for gate in verdict.gates if gate.kind in EXACTNESS_KINDS]
    return any(gate.result is not GateResult.PASSED for gate in exactness)


def _value_lines(verdict: Verdict) -> list[str]:
    one = verdict.reported_value
    return [] if one is None else [f"reported value: {short(one)} {unit(one)}"]


def _start_table(verdict: Verdict) -> list[str]:
    if not verdict.starts:
        return []
    rows = []
    for start in verdict.starts:
        figures = {one.name: one for one in start.figures}
        named = (figures.get(name) for name in ("first_row", "ttft_median", "coalesced_share"))
        rows.append((start.leg, short(start_headline(start)), *map(short, named), str(start.rows)))
    spread = spread_line(verdict)
    return [*table(START_HEADER, rows), "", *_note(verdict), *([f"The {spread}.", ""] if spread else [])]


def _note(verdict: Verdict) -> list[str]:
    names = {one.name for start in verdict.starts if (one := start_headline(start)) is not None}
    said = ", ".join(f"`{name}`" for name in sorted(names)) or "the rate"
    return [f"The headline of a start is the median of {said} over its rows; TTFT is the median too.", ""]


def _facts(verdict: Verdict) -> list[str]:
    facts = [
        ("class", verdict.campaign_class.value),
        ("packet", f"{verdict.kind}, attempt {verdict.attempt}, `{verdict.packet_sha256}`"),
        ("engine", markdown(verdict.engine)),
        ("analyzer", f"{verdict.analyzer.name} ({verdict.analyzer.standing}), `{verdict.analyzer.sha256}`"),
    ]
    if verdict.observed_difference is not None:
        facts.append(("observed difference between the arms", markdown("; ".join(verdict.observed_difference))))
    if verdict.expectation:
        facts.append(("expectation", markdown(verdict.expectation)))
    return [*table(("", ""), facts), ""]
