"""`labctl analyze`: let the packet's analyzers judge a sealed run."""

from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.cli.named import run_named

PACKET_LIMIT_BYTES = 64 << 20
OUT_HELP = "The analyses root; by default that of the run's host profile, in this campaign repository."
SUPERSEDES_HELP = "The sealed analysis that the new one replaces; needs --reason."
app = typer.Typer(name="analyze", help="Judge sealed runs.", no_args_is_help=True)


@app.callback()
def analyze() -> None:
    """Judge sealed runs."""


@app.command("sealed-run")
def sealed_run(
    named: Annotated[str, typer.Argument(help="The folder or the name of a sealed run.", metavar="RUN")],
    *,
    out: Annotated[Path | None, typer.Option(help=OUT_HELP)] = None,
    supersedes: Annotated[Path | None, typer.Option(help=SUPERSEDES_HELP)] = None,
    reason: Annotated[str | None, typer.Option(help="Why the run is judged again, in one line.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON on stdout.")] = False,
) -> None:
    """Judge a sealed run, seal the analysis, and exit by its verdict."""
    from labctl.analyze.verdict import exit_code_of
    from labctl.judges import JudgeRequest, Reanalysis, judge_run
    from labctl.report.text import render_report, summarize

    if supersedes is not None and reason is None:
        message = "--supersedes needs --reason TEXT"
        raise typer.BadParameter(message)
    again = None if reason is None else Reanalysis(supersedes=supersedes, reason=reason)
    run = run_named(named)
    analyses = analyses_root(run) if out is None else out
    judgement = judge_run(JudgeRequest(run=run, analyses=analyses, reanalysis=again, render=render_report))
    if as_json:
        show.json_document(judgement.verdict.model_dump(mode="json"))
    else:
        for text in (*summarize(judgement.verdict), f"report: {judgement.report}"):
            show.line(text)
    raise typer.Exit(exit_code_of(judgement.verdict))


def analyses_root(run: Path) -> Path:
    """The analyses root that a run's own packet names; a relative one starts at the top of this repository."""
    from labctl.durable import read_regular
    from labctl.packet.git_command import find_repository
    from labctl.packet.model import Packet

    file = run / "data" / "packet" / "packet.json"
    packet = Packet.from_json(read_regular(file, limit_bytes=PACKET_LIMIT_BYTES), str(file))
    named = Path(packet.host.roots.analyses)
    return named if named.is_absolute() else find_repository(Path.cwd()) / named
