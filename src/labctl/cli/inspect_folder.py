"""`labctl inspect`: a plain view of evidence that another lab wrote."""

from pathlib import Path
from typing import Annotated

import typer

from labctl.cli import show


def inspect_folder(
    folder: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of one start, as the lab left it.")],
    *,
    teacher: Annotated[
        list[Path] | None, typer.Option(help="A token or text file of the lab's teacher; may be given twice.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output on stdout.")] = False,
) -> None:
    """Look at another lab's evidence: metrics, accounting, log, findings, and what is missing. Reads only."""
    from labctl.analyze.foreign.inspect_folder import inspect_folder as look
    from labctl.report.evidence_view import view_lines

    view = look(folder, teacher or ())
    if as_json:
        show.json_document(view.model_dump(mode="json"))
        return
    for text in view_lines(view):
        show.line(text)
