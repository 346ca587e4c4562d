"""`labctl runs`: the runs of this machine, and what one of them holds."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show
from labctl.cli.named import roots_here, run_named

if TYPE_CHECKING:
    from labctl.analyze.compare_starts import SealedStart
    from labctl.seal.verify import SealedRun

LEG = re.compile(r"[AB][1-9][0-9]?")
app = typer.Typer(help="List, show, compare and export runs.", no_args_is_help=True, rich_markup_mode=None)
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout.")]


@app.command("list")
def list_runs(as_json: AsJson = False) -> None:
    """List every run of every host profile, with what became of it."""
    from labctl.campaign.lookup import frozen_packets
    from labctl.campaign.status import packet_status
    from labctl.cli.packet_table import facts_of, table_of_runs
    from labctl.packet.git_command import find_repository

    frozen = frozen_packets(roots_here(find_repository(Path.cwd())))
    spent = [one for one in map(packet_status, frozen) if one.run is not None]
    if as_json:
        show.json_document([facts_of(one) for one in spent])
        return
    for text in table_of_runs(spent) if spent else ("nothing was run here",):
        show.line(text)


@app.command("show")
def show_run(
    run: Annotated[str, typer.Argument(help="The folder or the name of a sealed run.")], as_json: AsJson = False
) -> None:
    """Verify a sealed run and show what it is; the verdict is `labctl report`'s."""
    from labctl.seal.verify import open_sealed_run

    facts = _facts(open_sealed_run(run_named(run)))
    if as_json:
        show.json_document(facts)
        return
    for name, value in facts.items():
        show.line(f"{name:12} {', '.join(value) if isinstance(value, list) else value}")


@app.command("compare")
def compare_runs(
    first: Annotated[str, typer.Argument(metavar="RUN[:LEG]", help="A sealed start; the run's first, if unnamed.")],
    second: Annotated[str, typer.Argument(metavar="RUN[:LEG]", help="What is held against it.")],
    as_json: AsJson = False,
) -> None:
    """Put two sealed starts side by side; refused where they were not asked the same."""
    from labctl.analyze.compare_starts import compare_starts
    from labctl.report.start_comparison import comparison_lines

    comparison = compare_starts(_start_named(first), _start_named(second))
    if as_json:
        show.json_document(comparison.model_dump(mode="json"))
        return
    for text in comparison_lines(comparison):
        show.line(text)


def _start_named(text: str) -> "SealedStart":
    from labctl.analyze.compare_starts import open_sealed_start
    from labctl.seal.verify import open_sealed_run

    named, _, leg = text.rpartition(":")
    if not named or not LEG.fullmatch(leg):
        named, leg = text, ""
    return open_sealed_start(open_sealed_run(run_named(named)), leg or None)


def _facts(sealed: "SealedRun") -> dict[str, object]:
    from labctl.packet.opening import read_packet

    packet = read_packet(sealed.read("packet/packet.json"), "packet/packet.json")
    return {
        "run": sealed.run_dir,
        "campaign": packet.preregistration.id,
        "question": packet.preregistration.question,
        "kind": packet.kind,
        "class": packet.preregistration.campaign_class.value,
        "attempt": packet.attempt,
        "packet": packet.id,
        "order": list(sealed.statement.predicate.order),
        "outcome": sealed.outcome.outcome.value,
        "why": list(sealed.outcome.detail),
        "files": len(sealed.names()),
        "root": sealed.root_sha256,
        "seal": sealed.seal_sha256,
    }


@app.command("export")
def export_run(
    run: Annotated[str, typer.Argument(help="The folder or the name of a sealed run.")],
    target: Annotated[Path, typer.Argument(help="The folder of the copy, which must not exist.")],
    *,
    reason: Annotated[str, typer.Option(help="Why it is made, in one line; stands in the copy.")],
    names: Annotated[list[str] | None, typer.Option("--map", help="NAME=REPLACEMENT, everywhere; repeatable.")] = None,
    ranges: Annotated[list[str] | None, typer.Option("--redact", help="PATH[:START-END] below data/.")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a sealed run for others: names replaced, bytes taken out; the copy says so and never passes as the run."""
    from labctl.seal.export import ExportRequest, export_run, named_range, named_replacement
    from labctl.seal.verify import open_sealed_run

    sealed = open_sealed_run(run_named(run))
    mapped = dict(named_replacement(text) for text in names or ())
    redactions = tuple(named_range(sealed, text) for text in ranges or ())
    record = export_run(ExportRequest(sealed, target.absolute(), reason, mapped, redactions))
    if as_json:
        show.json_document(record.model_dump(mode="json"))
        return
    show.line(f"copy: {target} of run {record.original.run_dir}, seal {record.original.seal_sha256[:12]}")
    counts = (len(record.changed), len(record.names), len(redactions))
    show.line("files that differ: {}; names replaced: {}; ranges taken out: {}".format(*counts))
    show.line("it has no seal; read it once more before it is published")
