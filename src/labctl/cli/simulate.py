"""`labctl simulate`: how often each rule set passes by luck and how often it sees, from synthetic campaigns."""

from typing import Annotated

import typer

from labctl.cli import show


def simulate(
    campaigns: Annotated[int, typer.Option(min=1, help="Campaigns a cell.")] = 20_000,
    compared: Annotated[int, typer.Option(min=0, help="Of these, how many go through the seed's rules too.")] = 4_000,
    seed: Annotated[int, typer.Option(min=0, help="Of all random numbers.")] = 1,
    section: Annotated[list[str] | None, typer.Option(help="Only this part of the table; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output on stdout.")] = False,
) -> None:
    """Run synthetic campaigns through the real analyzer, and print the table of error rates."""
    from labctl.simulate.catalogue import sections
    from labctl.simulate.rule_sets import RuleSet
    from labctl.simulate.run_cells import Size, run_cells
    from labctl.simulate.table import header, line

    known = {one.name: one for one in sections()}
    if strangers := set(section or ()) - known.keys():
        message = f"{', '.join(sorted(strangers))}: choose from {', '.join(known)}"
        raise typer.BadParameter(message)
    size, rules, document = Size(campaigns, compared, seed), tuple(RuleSet), []
    for one in known.values() if not section else (known[name] for name in section):
        for text in () if as_json else header(one, rules):
            show.line(text)
        for cell, counts in run_cells(one.cells, rules, size):
            document += [
                {"cell": cell.name, "rules": count.rules, "passed": count.passed, "campaigns": count.campaigns}
                for count in counts
            ]
            show.progress(f"{cell.name}: done") if as_json else show.line(line(one, cell, counts))
        if not as_json:
            show.line("")
    if as_json:
        show.json_document(document)
