"""`labctl plan`, `rehearse`, `consume-and-run` and `status`: from a campaign file to a verdict."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show
from labctl.cli.named import roots_here
from labctl.cli.progress import ProgressLine

if TYPE_CHECKING:
    from labctl.rundir import PacketPaths

Campaign = Annotated[Path, typer.Argument(help="The campaign file.")]
NOT_EXERCISED = "your service command is NOT exercised: the embedded endpoint runs in its place; use --service real"
AsJson = Annotated[bool, typer.Option("--json", help="Machine output on stdout.")]


class TargetName(StrEnum):
    """What a rehearsal runs."""

    EMBEDDED = "embedded"
    REAL = "real"


def plan(campaign: Campaign, as_json: AsJson = False) -> None:
    """Print every command, environment, path and gate that a run would use; touch nothing."""
    from labctl.campaign.card_plan import describe_card_plan
    from labctl.campaign.plan import describe_plan
    from labctl.campaign.roots import Roots
    from labctl.packet.git_command import find_repository
    from labctl.prereg.card_files import LoadedCardCampaign, load_any_campaign

    loaded = load_any_campaign(campaign)
    roots = Roots.of_profile(loaded.host.model, find_repository(campaign))
    if isinstance(loaded, LoadedCardCampaign):
        lines = tuple(describe_card_plan(loaded.preregistration.model, loaded.host.model, roots))
    else:
        lines = tuple(describe_plan(loaded.preregistration.model, loaded.host.model, loaded.suite.model, roots))
    if as_json:
        show.json_document({"campaign": loaded.preregistration.model.id, "plan": lines})
        return
    for text in lines:
        show.line(text)


def consume_and_run(
    named: Annotated[str, typer.Argument(metavar="CAMPAIGN|PACKET_ID", help="A campaign file, or a packet's id.")],
    authorization: Annotated[
        Path | None, typer.Option(help="Where packets lie, if not where the campaign says.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a frozen packet, once, ever: preflight, consume, run, seal, judge, report."""
    from labctl.packet.locate import locate_packet

    _run(locate_packet(named, authorization), as_json)


def rehearse(
    campaign: Campaign,
    service: Annotated[TargetName, typer.Option(help="The embedded endpoint, or the real service.")] = (
        TargetName.EMBEDDED
    ),
    as_json: AsJson = False,
) -> None:
    """Run the same code on the work tree as it is, without reviews; the verdict can only be `rehearsal_only`."""
    from labctl.packet.freeze import FreezeRequest
    from labctl.packet.git_command import find_repository
    from labctl.packet.machine import packet_folder
    from labctl.packet.rehearsal import RehearsalTarget, freeze_rehearsal

    kind = RehearsalTarget.EMBEDDED if service is TargetName.EMBEDDED else RehearsalTarget.REGISTERED
    packet = freeze_rehearsal(FreezeRequest(campaign, progress=show.progress), kind)
    if packet.service == "embedded":
        show.progress(NOT_EXERCISED)
    _run(packet_folder(packet, find_repository(campaign)), as_json)


def status(
    campaign: Annotated[str | None, typer.Argument(help="A campaign file or id; every campaign where absent.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say of each packet whether it is spent, and what became of it."""
    from labctl.campaign.lookup import campaign_id, frozen_packets
    from labctl.campaign.status import packet_status
    from labctl.cli.packet_table import facts_of, table
    from labctl.packet.git_command import find_repository

    repository = find_repository(Path.cwd())
    wanted = campaign_id(campaign) if campaign else None
    every = [packet_status(frozen) for frozen in frozen_packets(roots_here(repository))]
    shown = [one for one in every if wanted in (None, one.frozen.packet.preregistration.id)]
    if campaign and not shown:
        _require_known(campaign, sorted({one.frozen.packet.preregistration.id for one in every}))
    if as_json:
        show.json_document([facts_of(one) for one in shown])
        return
    for text in table(shown) if shown else (f"no packet{f' of {wanted}' if wanted else ''} was frozen here",):
        show.line(text)


def _require_known(named: str, ids: list[str]) -> None:
    """Refuse a name that is neither a file nor the id of a campaign that was frozen here."""
    from labctl.codes import Code
    from labctl.errors import NotFound, Problem

    if not Path(named).is_file():
        got = f"neither; frozen here: {', '.join(ids) or 'nothing'}"
        do = "name the file, or see `labctl status`"
        raise NotFound(Problem(Code.NOT_FOUND, named, "a campaign file or the id of a frozen campaign", got, do))


def _run(folder: "PacketPaths", as_json: bool) -> None:
    from labctl.analyze.verdict import exit_code_of
    from labctl.campaign.roots import Roots
    from labctl.clock import SystemClock
    from labctl.packet.git_command import find_repository
    from labctl.packet.opening import open_packet
    from labctl.pipeline import Job, consume_and_run
    from labctl.report.text import summarize

    packet = open_packet(folder)
    roots = Roots.of_packet(packet, find_repository(Path.cwd()))
    with ProgressLine(len(packet.order)) as progress:
        done = consume_and_run(Job(folder, roots, SystemClock(), progress.announce, progress.leg))
    verdict = done.judgement.verdict
    if as_json:
        show.json_document(verdict.model_dump(mode="json"))
    else:
        for text in summarize(verdict):
            show.line(text)
        show.line(f"run:    {done.sealed.root}")
        show.line(f"report: {done.judgement.report}")
    raise typer.Exit(exit_code_of(verdict))
