"""The command `labctl`: parse, call one step, show, exit."""

import gc
import sys

gc.set_threshold(500_000)  # most of a command's start is imports, which make no garbage

import typer  # noqa: E402 (after the line above, which is for it)

from labctl.cli import analyze, oracle, packet, prereg, report, review, run, runs, seal, show  # noqa: E402
from labctl.errors import LabctlError  # noqa: E402

INTERRUPTED = 130
app = typer.Typer(
    name="labctl",
    help="Preregistered, one-shot, sealed experiment campaigns for LLM-inference optimisation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(prereg.app, name="prereg")
app.add_typer(packet.app, name="packet")
app.add_typer(review.app, name="review")
app.command("plan")(run.plan)
app.command("rehearse")(run.rehearse)
app.command("consume-and-run")(run.consume_and_run)
app.command("status")(run.status)
app.add_typer(analyze.app, name="analyze")
app.add_typer(seal.app, name="seal")
app.command("report")(report.report)
app.add_typer(runs.app, name="runs")
app.add_typer(oracle.app, name="oracle")


def main() -> None:
    """Run the command line; a problem is one line on stderr, and its error's exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except LabctlError as error:
        for problem in error.problems:
            show.error(str(problem))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
