"""`labctl host`: what this machine has for campaigns."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show

if TYPE_CHECKING:
    from labctl.campaign.host_check import HostReport, VendorReport
    from labctl.campaign.look import Look
    from labctl.records.devices import Card

app = typer.Typer(help="Look at this machine.", no_args_is_help=True, rich_markup_mode=None)
GIB = 1 << 30
MIB = 1 << 20


@app.callback()
def _group() -> None:
    """Keep `check` a word of its own while it is the only command."""


@app.command()
def check(
    host: Annotated[Path | None, typer.Argument(help="A host profile, whose rules are checked.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output on stdout.")] = False,
) -> None:
    """Show machine, storage, load and the cards of every vendor; exit 3 if anything is wrong."""
    from labctl.campaign.host_check import check_host
    from labctl.clock import SystemClock

    report = check_host(host, SystemClock())
    if as_json:
        show.json_document(_as_json(report))
    else:
        for text in _lines(report):
            show.line(text)
        for look in report.missed:
            show.error(str(look.problem("host")))
    if report.missed:
        raise typer.Exit(3)


def _lines(report: "HostReport") -> Iterator[str]:
    machine = report.machine
    memory = f"{machine.memory_bytes / GIB:.1f} GiB"
    yield f"machine   {machine.cpu_model}, {machine.cpu_count} CPUs, {memory}, {machine.architecture}"
    yield f"kernel    {machine.kernel}"
    yield f"id        {machine.machine_id_sha256[:12]}, boot {machine.boot_id}"
    for look in report.looks:
        yield f"{'ok' if look.is_met else 'WRONG':9} {look.name}: {look.observed} (wanted: {look.expected})"
    for vendor in report.vendors:
        yield from _vendor_lines(vendor)


def _vendor_lines(vendor: "VendorReport") -> Iterator[str]:
    if vendor.discovery is None:
        yield f"{vendor.vendor.value:9} {vendor.absent or 'no answer'}"
        return
    tool = vendor.discovery.tool
    drivers = ", ".join(sorted({card.driver for card in vendor.discovery.cards} - {tool.version}))
    told = f"{tool.name} {tool.version}" + (f", driver {drivers}" if drivers else "")
    yield f"{vendor.vendor.value:9} cards: {len(vendor.discovery.cards)}, by {told}"
    for card in vendor.discovery.cards:
        yield f"  {card.identity}  {card.bus_id}  {card.name}, {_memory(card)}, {_users(card)}"
    for remark in vendor.discovery.remarks:
        yield f"  {remark}"


def _memory(card: "Card") -> str:
    total = f"{card.memory_total_bytes // MIB} MiB"
    return total if card.memory_used_bytes is None else f"{card.memory_used_bytes // MIB} of {total} used"


def _users(card: "Card") -> str:
    return ", ".join(f"{one.role} {one.name or '?'} ({one.pid})" for one in card.processes) or "no process"


def _as_json(report: "HostReport") -> dict[str, object]:
    return {
        "machine": report.machine.model_dump(mode="json", by_alias=True),
        "looks": [_look(look) for look in report.looks],
        "cards": {
            vendor.vendor.value: {
                "absent": vendor.absent,
                "discovery": vendor.discovery.model_dump(mode="json", by_alias=True) if vendor.discovery else None,
                "looks": [_look(look) for look in vendor.looks],
            }
            for vendor in report.vendors
        },
        "problems": [str(look.problem("host")) for look in report.missed],
    }


def _look(look: "Look") -> dict[str, object]:
    return {"name": look.name, "expected": look.expected, "observed": look.observed, "is_met": look.is_met}
