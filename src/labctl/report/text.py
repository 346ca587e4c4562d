"""Step 9, report: a verdict as Markdown, the answer first; every figure comes from it and none is computed here."""

from labctl.records.verdict import GateResult, Verdict
from labctl.report.answer import gain_lines, opening, reasons, spread_line, start_headline
from labctl.report.blocks import bullets
from labctl.report.cards import card_lines
from labctl.report.conclusions import conclusions
from labctl.report.differences import difference_lines, differences
from labctl.report.escape import plain
from labctl.report.figures import effect, exact_values, rows, starts
from labctl.report.gates import gates, misses
from labctl.report.numbers import short, unit


def render_report(verdict: Verdict) -> str:
    """The whole report as Markdown."""
    sections = (
        opening(verdict),
        differences(verdict),
        conclusions(verdict),
        gates(verdict),
        misses(verdict),
        starts(verdict),
        effect(verdict),
        _follow_ups(verdict),
        _verification(verdict),
        exact_values(verdict),
        rows(verdict),
    )
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def summarize(verdict: Verdict) -> tuple[str, ...]:
    """The verdict, why, the gates, the gain, the starts and the doubts, one line each."""
    lines = [
        f"verdict: {verdict.verdict.value} ({verdict.campaign}, attempt {verdict.attempt}, "
        f"analyzer {verdict.analyzer.standing})",
        *(f"  because {reason}" for reason in reasons(verdict)),
        _gate_line(verdict),
    ]
    if verdict.reported_value is not None:
        lines.append(f"reported value: {short(verdict.reported_value)} {unit(verdict.reported_value)}")
    lines += [*gain_lines(verdict), *difference_lines(verdict)]
    headlines = [(start.leg, one) for start in verdict.starts if (one := start_headline(start)) is not None]
    if headlines:
        lines.append(f"starts: {', '.join(f'{leg} {short(one)}' for leg, one in headlines)} {headlines[0][1].unit}")
    spread = spread_line(verdict)
    lines += [spread] if spread else []
    notes = (f"note: {warning}" for warning in verdict.warnings)
    return tuple(plain(line) for line in (*lines, *notes, *card_lines(verdict)))


def _gate_line(verdict: Verdict) -> str:
    counts = {result: sum(gate.result is result for gate in verdict.gates) for result in GateResult}
    return (
        f"gates: {counts[GateResult.PASSED]} passed, {counts[GateResult.FAILED]} failed, "
        f"{counts[GateResult.NOT_EVALUATED]} not evaluated"
    )


def _follow_ups(verdict: Verdict) -> list[str]:
    return [
        "## What follows",
        "",
        *bullets("This verdict authorizes", verdict.authorizes or ("nothing",)),
        *bullets("It does not authorize", verdict.does_not_authorize),
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
        f"- {_origin(verdict)}",
        "",
    ]


def _origin(verdict: Verdict) -> str:
    if verdict.cards is not None:
        return (
            "every equality comes from `data/legs/*/rows.jsonl` and what `component.json` and `maps.txt` say beside it"
        )
    if verdict.probe is not None:
        return "the class comes from `data/legs/*/rank-R.jsonl` and `rank-R.exit.json`"
    return "every rate comes from `data/legs/*/wire/NN.bin` (the received bytes) and `NN.reads.jsonl` (their stamps)"
