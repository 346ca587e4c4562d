"""`labctl review`: ask for approvals of a packet, give one, and list what counts."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show

app = typer.Typer(help="Approve packets.", no_args_is_help=True, rich_markup_mode=None)
Authorization = Annotated[
    Path | None, typer.Option(help="Where packets lie; by default the campaign's own authorization root.")
]
Named = Annotated[str, typer.Argument(help="A campaign file, a packet's folder, or its id.")]


def _person(text: str) -> str:
    """The text, where it names a person and a mail address."""
    if re.fullmatch(r"[^<>\r\n]+ <[^<>@\s]+@[^<>@\s]+>", text) is None:
        message = "expected `Name <mail@host>`"
        raise typer.BadParameter(message)
    return text


@app.command()
def request(named: Named, authorization: Authorization = None) -> None:
    """Print what is to be reviewed, and the command that approves it."""
    from labctl.packet.locate import locate_packet
    from labctl.packet.opening import open_packet
    from labctl.packet.summary import summarize_for_review
    from labctl.prereg.model import Signatures

    folder = locate_packet(named, authorization)
    packet = open_packet(folder)
    for text in summarize_for_review(packet):
        show.line(text)
    key = " --key PRIVATE_KEY" if packet.preregistration.reviews.signatures is Signatures.SSH else ""
    show.line(f'to approve: labctl review approve {folder.root} --reviewer "Name <mail>"{key}')


@app.command()
def approve(  # noqa: PLR0917 (every parameter but the first is an option)
    named: Named,
    reviewer: Annotated[str, typer.Option(help="Who approves: `Name <mail@host>`.", callback=_person)],
    key: Annotated[Path | None, typer.Option(help="The OpenSSH private key that signs the approval.")] = None,
    expires: Annotated[int | None, typer.Option(min=1, help="Days until the approval counts no longer.")] = None,
    check: Annotated[list[str] | None, typer.Option(help="What the reviewer did; may be given several times.")] = None,
    authorization: Authorization = None,
) -> None:
    """Approve one exact packet."""
    from labctl.clock import SystemClock
    from labctl.packet.approval import ApprovalRequest
    from labctl.packet.approve import file_approval
    from labctl.packet.locate import locate_packet

    folder = locate_packet(named, authorization)
    path = file_approval(folder, ApprovalRequest(reviewer, key, expires, tuple(check or ())), SystemClock())
    show.line(f"{path}: approved packet {folder.root.name}")


@app.command("list")
def list_reviews(
    named: Named,
    authorization: Authorization = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output on stdout.")] = False,
) -> None:
    """List the approvals of a packet, spent or not: those that count, and why the others do not."""
    from labctl.clock import SystemClock
    from labctl.packet.locate import locate_packet_to_read
    from labctl.packet.opening import open_packet
    from labctl.packet.review import judge_reviews

    folder = locate_packet_to_read(named, authorization)
    packet = open_packet(folder)
    counted, problems = judge_reviews(packet, folder, SystemClock())
    required = packet.preregistration.reviews.required
    if as_json:
        do_not_count = [asdict(problem) for problem in problems]
        counts = {"count": list(counted), "do_not_count": do_not_count}
        show.json_document({"packet": packet.id, "required": required, **counts})
        return
    show.line(f"packet {packet.id}: {len(counted)} of {required} approvals")
    for digest in counted:
        show.line(f"  counts: {digest}")
    for problem in problems:
        show.line(f"  does not count: {problem}")
