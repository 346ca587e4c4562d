"""`labctl seal`: verify a sealed run, or seal a killed one as aborted."""

from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.codes import Code
from labctl.errors import LabctlError, NotFound, Problem

app = typer.Typer(name="seal", help="Verify a sealed run, or seal a killed one as aborted.", no_args_is_help=True)
Run = Annotated[Path, typer.Argument(help="The run's folder.", metavar="RUN")]
Authorization = Annotated[
    Path | None,
    typer.Option(help="The authorization root; default: .labctl/authorization at the top of this repository."),
]


@app.command()
def verify(
    run: Run, *, as_json: Annotated[bool, typer.Option("--json", help="Machine output on stdout.")] = False
) -> None:
    """Check every byte of a sealed run; exit 5 names each file that is not what it must be."""
    from labctl.seal.verify import open_sealed_run

    try:
        sealed = open_sealed_run(run)
    except LabctlError as error:
        if as_json:
            problems = [
                {"code": p.code, "where": p.where, "expected": p.expected, "got": p.got} for p in error.problems
            ]
            show.json_document({"run": run.name, "is_sealed": False, "problems": problems})
        raise
    facts = {
        "run": sealed.root.name,
        "is_sealed": True,
        "files": len(sealed.names()),
        "root_sha256": sealed.root_sha256,
        "seal_sha256": sealed.seal_sha256,
        "outcome": sealed.outcome.outcome.value,
        "problems": [],
    }
    if as_json:
        show.json_document(facts)
    else:
        show.line("{run}: sealed, {files} files, root {root_sha256}, outcome {outcome}".format(**facts))


@app.command()
def abort(
    run: Run,
    authorization: Authorization = None,
    reason: Annotated[
        str, typer.Option(help="One line: why the run is sealed from outside.")
    ] = "its controller was killed",
) -> None:
    """Seal a run whose controller was killed, as aborted; what is there stays as it is."""
    from labctl.campaign.roots import Roots
    from labctl.clock import SystemClock
    from labctl.ledger import LedgerEvent, append_ledger, last_digest
    from labctl.marker import find_marker
    from labctl.packet.opening import open_packet
    from labctl.rundir import AuthorizationPaths
    from labctl.seal.abort import Abortion, restore_copies, seal_aborted

    clock = SystemClock()
    paths = AuthorizationPaths(authorization or _repository_top() / ".labctl" / "authorization")
    root = run.resolve()
    found = find_marker(paths, root.name)
    if not root.exists():  # the controller died before it made the folder: it may be made where it belongs only
        runs = Roots.of_packet(open_packet(paths.packet(found.marker.packet_sha256)), _repository_top()).runs
        _require_parent(root, runs)
    restore_copies(root, paths.packet(found.marker.packet_sha256), found.data)
    sealed = seal_aborted(root, Abortion(reason, last_digest(paths.ledger), clock))
    packet = sealed.statement.predicate.external_parameters.packet_sha256
    campaign = root.name.split(f"-{packet[:12]}-")[0]
    event = LedgerEvent("sealed", packet, campaign, root.name, sealed.seal_sha256, clock.realtime_ns())
    append_ledger(paths.ledger, event)
    show.line(f"{root.name}: sealed as aborted, {len(sealed.names())} files, root {sealed.root_sha256}")


def _require_parent(root: Path, runs: Path) -> None:
    if root.parent != runs.resolve():
        do = f"name {runs / root.name}"
        raise NotFound(
            Problem(Code.NOT_FOUND, str(root), "the run's folder, or its place in the runs root", "neither", do)
        )


def _repository_top() -> Path:
    here = Path.cwd()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if top is None:
        do = "give --authorization DIR"
        raise NotFound(Problem(Code.NOT_FOUND, str(here), "a folder inside a git repository", "none", do))
    return top
