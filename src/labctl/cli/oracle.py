"""`labctl oracle`: teachers made from sealed starts, or taken from another lab's files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.cli.named import require_place_for, run_named

app = typer.Typer(
    help="Make or import teachers, which say what starts must answer.", no_args_is_help=True, rich_markup_mode=None
)
Out = Annotated[Path, typer.Option(help="The new oracle file.")]


class Holds(StrEnum):
    """What a teacher holds."""

    TOKENS_AND_TEXT = "tokens-and-text"
    TEXT = "text"


class AskedApi(StrEnum):
    """The two generation endpoints."""

    COMPLETIONS = "completions"
    CHAT = "chat"


class AtEnd(StrEnum):
    """What the lab's server did at an end token."""

    STOP = "stop"
    GO_ON = "go-on"


@app.callback()
def oracle() -> None:
    """Make or import teachers, which say what starts must answer."""


@app.command()
def make(
    named: Annotated[
        str, typer.Argument(metavar="RUN", help="A sealed, completed run that begins with a control start.")
    ],
    out: Out,
    holds: Annotated[
        Holds, typer.Option(help="Token ids and digests of text, or digests of text alone.")
    ] = Holds.TOKENS_AND_TEXT,
) -> None:
    """Take what a run's first start answered, without speculation, as what every later start must give."""
    from labctl.analyze.oracle import make_oracle, without_tokens
    from labctl.durable import write_once
    from labctl.seal.verify import open_sealed_run

    require_place_for(out)
    teacher = make_oracle(open_sealed_run(run_named(named)))
    write_once(out, (without_tokens(teacher) if holds is Holds.TEXT else teacher).canonical())
    show.line(f"{out}: {len(teacher.rows)} rows of the first start of {named}, {holds.value}")


@app.command("import")
def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The lab's token file, text file, or both.")],
    *,
    suite: Annotated[Path, typer.Option(help="The suite of the same prompts, in the same order.")],
    api: Annotated[AskedApi, typer.Option(help="How the prompts were asked.")],
    max_tokens: Annotated[int, typer.Option(min=1, help="How many tokens were asked for.")],
    out: Out,
    at_end: Annotated[AtEnd, typer.Option(help="What the server did at an end token.")] = AtEnd.STOP,
) -> None:
    """Take another lab's tokens, digests of texts, or both as a teacher; what they do not say stays untold."""
    from labctl.durable import write_once
    from labctl.prereg.foreign_oracle import Asked, import_oracle
    from labctl.prereg.load import load_suite
    from labctl.prereg.model import Api

    require_place_for(out)
    asked = Asked(Api(api.value), max_tokens, ignore_eos=at_end is AtEnd.GO_ON)
    teacher = import_oracle(files, load_suite(suite), asked)
    write_once(out, teacher.canonical())
    held = [name for name in ("token_ids", "text_sha256") if getattr(teacher.rows[0], name) is not None]
    show.line(f"{out}: {len(teacher.rows)} rows of another lab: {' and '.join(held)}")
