"""The sealed analyses of one run, and the one that counts."""

from pathlib import Path

from labctl.codes import Code
from labctl.errors import NotFound, Problem
from labctl.seal.analysis import SealedAnalysis, open_analysis
from labctl.seal.verify import SealedRun


def find_analyses(run: SealedRun, analyses: Path) -> tuple[SealedAnalysis, ...]:
    """The sealed analyses of one run, found by name and proved by the seal digest that they name."""
    found = []
    for folder in sorted(analyses.glob(f"{run.run_dir}-*")) if analyses.is_dir() else ():
        analysis = open_analysis(folder)
        if analysis.run_seal_sha256 == run.seal_sha256:
            found.append(analysis)
    return tuple(found)


def current_analysis(run: SealedRun, analyses: Path) -> SealedAnalysis:
    """The one analysis of a run that no other supersedes.

    Raises:
        NotFound: there is none, or more than one.
    """
    every = find_analyses(run, analyses)
    current = not_superseded(every)
    if len(current) == 1:
        return current[0]
    got = ", ".join(str(analysis.root) for analysis in current) or "none"
    raise NotFound(
        Problem(
            Code.AMBIGUOUS if current else Code.NOT_FOUND,
            str(run.root),
            "one analysis that is not superseded",
            got,
            "name one with --analysis DIR" if current else f"run `labctl analyze sealed-run {run.root}`",
        )
    )


def not_superseded(every: tuple[SealedAnalysis, ...]) -> list[SealedAnalysis]:
    """Those that no other one replaces."""
    superseded = {analysis.statement.predicate.facts.get("supersedes") for analysis in every}
    return [analysis for analysis in every if analysis.seal_sha256 not in superseded]
