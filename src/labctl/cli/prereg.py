"""`labctl prereg`: write, check and describe campaign files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labctl.cli import show

if TYPE_CHECKING:
    from labctl.errors import Problem
    from labctl.prereg.checking import FileReport

app = typer.Typer(help="Write, check and describe campaign files.", no_args_is_help=True, rich_markup_mode=None)


class Format(StrEnum):
    """How `validate` answers."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class Kind(StrEnum):
    """Kinds of campaigns."""

    ENDPOINT = "endpoint"
    COMPONENT = "component"
    PROBE = "probe"


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(help="The campaign's folder, such as campaigns/my-idea.")],
    kind: Annotated[Kind, typer.Option(help="What the campaign runs.")] = Kind.ENDPOINT,
) -> None:
    """Write a commented campaign that validates, with a host profile and a suite or a worker where it needs them."""
    from labctl.errors import NotFound
    from labctl.packet.git_command import find_repository
    from labctl.prereg.card_skeleton import CardKind, write_card_skeleton
    from labctl.prereg.skeleton import write_skeleton

    paths = write_skeleton(folder) if kind is Kind.ENDPOINT else write_card_skeleton(folder, CardKind(kind))
    for path in paths:
        show.line(f"{path}: written")
    try:
        find_repository(folder)
    except NotFound:
        show.progress(f"{folder} is in no git repository: `git init` makes one; freezing takes only what is committed")


@app.command()
def validate(
    paths: Annotated[list[Path], typer.Argument(help="Campaign files, and folders of them.")],
    answer: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TEXT,
) -> None:
    """Check campaigns, suites, host profiles, oracles and model manifests; exit 3 if anything is wrong."""
    from labctl.prereg.checking import check_paths

    reports = check_paths(paths)
    match answer:
        case Format.TEXT:
            _show_text(reports)
        case Format.JSON:
            show.json_document([_as_json(report) for report in reports])
        case Format.GITHUB:
            _show_github(reports)
    if not all(report.is_ok for report in reports):
        raise typer.Exit(3)


@app.command()
def schema(
    write: Annotated[bool, typer.Option("--write", help="Write the schema files.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare the schema files with the models.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the schema files lie.")] = Path("schemas"),
) -> None:
    """Write or check the JSON Schemas that editors use."""
    from labctl.schemas import check_schemas, write_schemas

    if write == check:
        raise typer.BadParameter("say one of --write and --check")
    if write:
        for path in write_schemas(folder):
            show.line(f"{path}: written")
        return
    for path in check_schemas(folder):
        show.line(f"{path}: ok")


def _show_text(reports: "list[FileReport]") -> None:
    for report in reports:
        for problem in report.problems:
            show.line(str(problem))
        if report.is_ok:
            show.line(f"{report.path}: ok")
        elif not report.problems:
            show.line(f"{report.path}: not ok, see {', '.join(report.blocked_by)}")


def _as_json(report: "FileReport") -> dict[str, object]:
    return {
        "path": report.path,
        "ok": report.is_ok,
        "blocked_by": list(report.blocked_by),
        "problems": [_problem_as_json(problem) for problem in report.problems],
    }


def _problem_as_json(problem: "Problem") -> dict[str, object]:
    file, line, column = problem.where.rsplit(":", 2)
    return {
        "code": problem.code.value,
        "file": file,
        "line": int(line),
        "column": int(column),
        "expected": problem.expected,
        "got": problem.got,
        "do": problem.do,
    }


def _show_github(reports: "list[FileReport]") -> None:
    for report in reports:
        for problem in report.problems:
            file, line, column = problem.where.rsplit(":", 2)
            message = f"expected {problem.expected}, got {problem.got}; {problem.do}"
            place = f"file={_property(file)},line={line},col={column},title={problem.code}"
            show.line(f"::error {place}::{_percent(message)}")
        if report.blocked_by and not report.problems:
            message = f"not ok, see {', '.join(report.blocked_by)}"
            show.line(f"::error file={_property(report.path)},line=1,col=1::{_percent(message)}")


def _percent(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _percent(text).replace(":", "%3A").replace(",", "%2C")
