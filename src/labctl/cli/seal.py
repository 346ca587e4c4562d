"""`labctl seal`: verify a sealed run, or seal a killed one as aborted."""

import os
from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.cli.named import run_named
from labctl.errors import LabctlError

app = typer.Typer(name="seal", help="Verify a sealed run, or seal a killed one as aborted.", no_args_is_help=True)
Run = Annotated[str, typer.Argument(help="The folder or the name of a run.", metavar="RUN")]


@app.command()
def verify(
    named: Run,
    authorization: Annotated[
        Path | None, typer.Option(help="The authorization root; by default every one that a host profile here names.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output on stdout.")] = False,
) -> None:
    """Check every byte of a sealed run, and its seal against the ledger; exit 5 names what is not as it must be."""
    from labctl.campaign.witness import Witness, authorizations_here, require_witnessed
    from labctl.rundir import AuthorizationPaths
    from labctl.seal.verify import open_sealed_run

    try:
        sealed = open_sealed_run(run_named(named))
        places = (AuthorizationPaths(authorization),) if authorization else authorizations_here(Path.cwd())
        witness = require_witnessed(sealed, places)
    except LabctlError as error:
        if as_json:
            problems = [
                {"code": p.code, "where": p.where, "expected": p.expected, "got": p.got} for p in error.problems
            ]
            show.json_document({"run": Path(named).absolute().name, "is_sealed": False, "problems": problems})
        raise
    facts: dict[str, object] = {
        "run": sealed.run_dir,
        "is_sealed": True,
        "files": len(sealed.names()),
        "root_sha256": sealed.root_sha256,
        "seal_sha256": sealed.seal_sha256,
        "outcome": sealed.outcome.outcome.value,
        "witness": witness.value,
        "problems": [],
    }
    if as_json:
        show.json_document(facts)
    else:
        line = "{run}: sealed, {files} files, root {root_sha256}, outcome {outcome}".format(**facts)
        show.line(f"{line}; {'no ledger here knows it' if witness is Witness.NONE else 'the ledger agrees'}")


@app.command()
def abort(
    run: Run,
    authorization: Annotated[
        Path | None, typer.Option(help="The authorization root; by default every one that a host profile here names.")
    ] = None,
    reason: Annotated[
        str, typer.Option(help="One line: why the run is sealed from outside.")
    ] = "its controller was killed",
) -> None:
    """Seal a run whose controller was killed, as aborted; what is there stays as it is."""
    from labctl.campaign.abort import AbortRequest, abort_run
    from labctl.campaign.lookup import known_authorizations
    from labctl.campaign.secret_scan import Secrets
    from labctl.clock import SystemClock
    from labctl.packet.git_command import find_repository
    from labctl.rundir import AuthorizationPaths

    repository = find_repository(Path.cwd())
    places = (AuthorizationPaths(authorization),) if authorization else known_authorizations(repository)
    secrets = Secrets.of_environment(os.environ)
    sealed = abort_run(AbortRequest(Path(run), places, repository, reason, SystemClock(), secrets))
    show.line(
        f"{sealed.run_dir}: sealed, outcome {sealed.outcome.outcome}, {len(sealed.names())} files, "
        f"root {sealed.root_sha256}"
    )
