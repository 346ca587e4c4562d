"""`labctl runs`: the runs of this machine, and what one of them holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show
from labctl.cli.named import roots_here, run_named

if TYPE_CHECKING:
    from labctl.seal.verify import SealedRun

app = typer.Typer(help="List runs and show one.", no_args_is_help=True, rich_markup_mode=None)
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
        "order": list(packet.order),
        "outcome": sealed.outcome.outcome.value,
        "why": list(sealed.outcome.detail),
        "files": len(sealed.names()),
        "root": sealed.root_sha256,
        "seal": sealed.seal_sha256,
    }
