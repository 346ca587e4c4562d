"""`labctl lane`: how often what has been attempted on this machine, whatever the campaigns were called."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show
from labctl.cli.named import roots_here

if TYPE_CHECKING:
    from labctl.campaign.lane_history import LaneEntry, LaneHistory

SHOWN_ID = 12
HUNDRED = 100
app = typer.Typer(help="Count the attempts at each thing that is improved.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout.")]


@app.callback()
def lane() -> None:
    """Count the attempts at each thing that is improved."""


@app.command("show")
def show_lanes(as_json: AsJson = False) -> None:
    """Show every lane: what is improved, each attempt, and what luck alone could have done by then."""
    from labctl.campaign.lane_history import lane_histories
    from labctl.host.boot import machine_id_sha256
    from labctl.packet.git_command import find_repository

    every = list(lane_histories(roots_here(find_repository(Path.cwd())), machine_id_sha256()))
    if as_json:
        show.json_document([_facts(one) for one in every])
        return
    for history in every:
        for text in _lines(history):
            show.line(text)
    if not every:
        show.line("nothing was attempted here")


def _lines(history: "LaneHistory") -> Iterator[str]:
    key = history.key
    what = "packets that cannot be read" if key is None else f"{key.target}, {key.metric}"
    machine = "" if key is None else f", machine {key.machine_id_sha256[:SHOWN_ID]}"
    yield f"lane {history.sha256[:SHOWN_ID]}: {what}{machine}"
    for entry in history.entries:
        chance = entry.lucky_pass_chance
        luck = "unknown" if chance is None else f"{float(chance * HUNDRED):.1f} %"
        yield (
            f"  attempt {entry.attempt}: {entry.line.campaign}, packet {entry.line.packet_sha256[:SHOWN_ID]}, "
            f"{_class_of(entry)}, {_verdict_of(history, entry) or 'no verdict'}; a pass by luck by then: {luck}"
        )


def _facts(history: "LaneHistory") -> dict[str, object]:
    return {
        "lane": history.sha256,
        "key": None if history.key is None else history.key.model_dump(mode="json"),
        "attempts": [
            {
                "attempt": entry.attempt,
                "campaign": entry.line.campaign,
                "packet": entry.line.packet_sha256,
                "run": entry.line.run_dir,
                "class": _class_of(entry),
                "verdict": _verdict_of(history, entry),
                "lucky_pass_chance": None if entry.lucky_pass_chance is None else str(entry.lucky_pass_chance),
            }
            for entry in history.entries
        ],
    }


def _class_of(entry: "LaneEntry") -> str:
    from labctl.prereg.model import Preregistration

    said = None if entry.packet is None else entry.packet.preregistration
    return f"class {said.campaign_class}" if isinstance(said, Preregistration) else "class unknown"


def _verdict_of(history: "LaneHistory", entry: "LaneEntry") -> str | None:
    from labctl.campaign.lookup import FrozenPacket
    from labctl.campaign.status import packet_status
    from labctl.cli.packet_table import verdict_of

    if entry.packet is None:
        return None
    folder = history.roots.authorization.packet(entry.packet.id)
    return verdict_of(packet_status(FrozenPacket(entry.packet, folder, history.roots)))
