"""The command `labctl`: parse, call one step, show, exit."""

import gc
import os
import sys
from importlib import import_module

gc.set_threshold(500_000)  # most of a command's start is imports, which make no garbage

import typer  # noqa: E402 (after the line above, which is for it)

from labctl.cli import show  # noqa: E402
from labctl.errors import LabctlError  # noqa: E402

INTERRUPTED = 130
AMBIENT_PYTHON = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONOPTIMIZE", "PYTHONUSERBASE", "PYTHONINSPECT"}
GROUPS = {
    "prereg": "prereg",
    "packet": "packet",
    "review": "review",
    "analyze": "analyze",
    "seal": "seal",
    "runs": "runs",
    "oracle": "oracle",
    "power": "power",
    "lane": "lane",
    "metrics": "metrics",
    "host": "host",
}
"""Groups of commands, each the `app` of a module of this package."""
COMMANDS = {
    "plan": ("run", "plan"),
    "rehearse": ("run", "rehearse"),
    "consume-and-run": ("run", "consume_and_run"),
    "status": ("run", "status"),
    "report": ("report", "report"),
    "simulate": ("simulate", "simulate"),
    "inspect": ("inspect_folder", "inspect_folder"),
}
"""Single commands, each a function of a module of this package."""


def application(word: str | None = None) -> typer.Typer:
    """The command line with every command, or with the one that was asked for: importing the rest takes time."""
    app = typer.Typer(
        name="labctl",
        help="Preregistered, one-shot, sealed experiment campaigns for LLM-inference optimisation.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_nothing)  # so that a single command stays a command
    chosen = {word} if word in GROUPS.keys() | COMMANDS.keys() else GROUPS.keys() | COMMANDS.keys()
    for name, module in GROUPS.items():
        if name in chosen:
            app.add_typer(import_module(f"labctl.cli.{module}").app, name=name)
    for name, (module, function) in COMMANDS.items():
        if name in chosen:
            app.command(name)(getattr(import_module(f"labctl.cli.{module}"), function))
    return app


def _isolate() -> None:
    """Start again in isolation where the environment would bring foreign code, or no assertions, into this process."""
    ambient = AMBIENT_PYTHON & os.environ.keys()
    if ambient and not sys.flags.isolated:
        os.execv(sys.executable, [sys.executable, "-I", "-P", "-m", "labctl", *sys.argv[1:]])  # noqa: S606 (no shell)


def main() -> None:
    """Run the command line; a problem is one line on stderr, and its error's exit status."""
    _isolate()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        application(next(iter(sys.argv[1:]), None))()
    except LabctlError as error:
        for problem in error.problems:
            show.error(str(problem))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # nothing is left to collect at exit, and looking for it takes a tenth of a short command


def _nothing() -> None:
    return


if __name__ == "__main__":
    main()
