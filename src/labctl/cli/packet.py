"""`labctl packet`: freeze campaigns, show packets, and say what differs between two."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show

if TYPE_CHECKING:
    from labctl.packet.model import Packet

app = typer.Typer(help="Freeze campaigns and look at packets.", no_args_is_help=True, rich_markup_mode=None)
Authorization = Annotated[
    Path | None, typer.Option(help="Where packets lie; by default the campaign's own authorization root.")
]
Named = Annotated[str, typer.Argument(help="A campaign file, a packet's folder, or its id.")]


@app.command()
def freeze(
    campaign: Annotated[Path, typer.Argument(help="The campaign file.")],
    follows: Annotated[str | None, typer.Option(help="The id of the spent packet that this one follows.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole packet as JSON.")] = False,
) -> None:
    """Freeze a campaign: verify everything that decides the run, and write the packet."""
    from labctl.packet.freeze import FreezeRequest, freeze_packet

    packet = freeze_packet(FreezeRequest(campaign, follows, show.progress))
    if as_json:
        _show_json(packet)
        return
    _show_packet(packet)
    if packet.preregistration.reviews.required:
        show.line(f"next: ask for reviews with `labctl review request {packet.id[:12]}`")
    else:
        show.line(f"next: run it, once, with `labctl consume-and-run {campaign}`")


@app.command("show")
def show_packet(
    named: Named,
    authorization: Authorization = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole packet as JSON.")] = False,
) -> None:
    """Show what a packet pins."""
    from labctl.packet.locate import locate_packet_to_read
    from labctl.packet.opening import open_packet

    packet = open_packet(locate_packet_to_read(named, authorization))
    if as_json:
        _show_json(packet)
    else:
        _show_packet(packet)


@app.command()
def diff(
    was: Annotated[str, typer.Argument(help="The earlier packet.")],
    now: Annotated[str, typer.Argument(help="The later packet.")],
    authorization: Authorization = None,
) -> None:
    """Say in words what differs between two packets."""
    from labctl.packet.difference import describe_difference
    from labctl.packet.locate import locate_packet_to_read
    from labctl.packet.opening import open_packet

    first, second = (open_packet(locate_packet_to_read(named, authorization)) for named in (was, now))
    for line in describe_difference(first, second):
        show.line(line)


def _show_json(packet: "Packet") -> None:
    show.json_document({"id": packet.id, "packet": packet.model_dump(mode="json")})


def _show_packet(packet: "Packet") -> None:
    from labctl.packet.summary import summarize_packet

    for line in summarize_packet(packet):
        show.line(line)
