"""`labctl power`: what a campaign can see, and the noise of a host from sealed calibration runs."""

from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.cli.named import require_place_for, run_named

app = typer.Typer(help="Compute what a campaign can see, and pool noise.", no_args_is_help=True, rich_markup_mode=None)
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout.")]


@app.command("plan")
def plan(
    campaign: Annotated[Path, typer.Argument(help="The campaign file; it must state a power.")], as_json: AsJson = False
) -> None:
    """Compute power, smallest effect and needed starts of a campaign from its noise record."""
    from labctl.packet.planned_power import campaign_power, lines_of_plan

    said, planned = campaign_power(campaign)
    if as_json:
        show.json_document(planned.model_dump(mode="json"))
        return
    for text in lines_of_plan(said, planned):
        show.line(text)


@app.command("pool")
def pool(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Sealed calibration runs of one host.")],
    out: Annotated[Path, typer.Option(help="The new noise record.")],
    name: Annotated[str | None, typer.Option(help="Its id; by default the name of the file.")] = None,
) -> None:
    """Pool sealed calibration runs into the noise record of their host."""
    from labctl.analyze.pool import pool_noise
    from labctl.durable import write_once
    from labctl.packet.tool import analyzer_identity
    from labctl.seal.verify import open_sealed_run

    require_place_for(out)
    sealed = [open_sealed_run(run_named(run)) for run in runs]
    record = pool_noise(sealed, name or out.stem, analyzer_identity())
    write_once(out, record.canonical())
    show.line(f"{out}: {len(record.runs)} runs, {record.df + len(record.runs)} starts of {record.engine}")
    spread = f"{record.start_sd_lower_percent} to {record.start_sd_upper_percent} %"
    show.line(f"SD between starts {record.start_sd_percent} % (95 %: {spread}), rows {record.row_sd_percent} %")
