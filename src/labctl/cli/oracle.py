"""`labctl oracle`: teachers made from sealed starts."""

from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.cli.named import run_named

app = typer.Typer(help="Make teachers from sealed starts.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def oracle() -> None:
    """Make teachers from sealed starts."""


@app.command()
def make(
    named: Annotated[
        str, typer.Argument(metavar="RUN", help="A sealed, completed run that begins with a control start.")
    ],
    out: Annotated[Path, typer.Option(help="The new oracle file.")],
) -> None:
    """Take the tokens of a run's first start as what every later start must give."""
    from labctl.analyze.oracle import make_oracle
    from labctl.durable import write_once
    from labctl.seal.verify import open_sealed_run

    teacher = make_oracle(open_sealed_run(run_named(named)))
    write_once(out, teacher.canonical())
    show.line(f"{out}: {len(teacher.rows)} rows of the first start of {named}")
