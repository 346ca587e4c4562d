"""`labctl report`: show the report of a run's current analysis."""

from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show
from labctl.cli.named import run_named

ANALYSIS_HELP = "A sealed analysis; by default the one of this run that none supersedes."
VERDICT_FILE = "verdict.json"


def report(
    named: Annotated[str, typer.Argument(help="The folder or the name of a sealed run.", metavar="RUN")],
    *,
    analysis: Annotated[Path | None, typer.Option(help=ANALYSIS_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON on stdout.")] = False,
) -> None:
    """Show the report of a sealed run's analysis."""
    from labctl.cli.analyze import analyses_root
    from labctl.records.verdict import Verdict
    from labctl.report.text import render_report
    from labctl.seal.analyses import current_analysis
    from labctl.seal.analysis import open_analysis
    from labctl.seal.verify import open_sealed_run

    run = run_named(named)
    sealed = open_sealed_run(run)
    if analysis is None:
        found = current_analysis(sealed, analyses_root(run))
    else:
        found = open_analysis(analysis)
        require_subject(found.run_seal_sha256, sealed.seal_sha256, analysis)
    verdict = Verdict.from_json(found.read(VERDICT_FILE), VERDICT_FILE)
    if as_json:
        show.json_document(verdict.model_dump(mode="json"))
    else:
        show.lines(render_report(verdict))


def require_subject(of_analysis: str, of_run: str, analysis: Path) -> None:
    """Refuse an analysis that speaks of another run.

    Raises:
        NotFound: the analysis names another seal.
    """
    from labctl.codes import Code
    from labctl.errors import NotFound, Problem

    if of_analysis != of_run:
        do = "name an analysis of this run"
        raise NotFound(Problem(Code.SEAL_FOREIGN, str(analysis), f"seal {of_run}", f"seal {of_analysis}", do))
