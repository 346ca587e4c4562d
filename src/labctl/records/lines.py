"""Files of canonical JSON lines: read whole, with every problem of the file."""

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from labctl.codes import Code
from labctl.errors import MalformedRecord, Problem
from labctl.frozen import FrozenModel

Line = TypeVar("Line", bound=FrozenModel)


def read_lines(adapter: TypeAdapter[Line], data: bytes, where: str) -> tuple[Line, ...]:
    """Read lines of one kind, or of one union; each must be whole and in canonical form.

    Raises:
        MalformedRecord: with every problem of the file.
    """
    lines, problems = parse_lines(adapter, data, where)
    if problems:
        raise MalformedRecord(problems)
    return tuple(lines)


def parse_lines(adapter: TypeAdapter[Line], data: bytes, where: str) -> tuple[list[Line], list[Problem]]:
    """The lines that could be read, and every problem of the file."""
    lines: list[Line] = []
    problems: list[Problem] = []
    for number, text in enumerate(data.splitlines(keepends=True), start=1):
        place = f"{where}:{number}"
        try:
            line = adapter.validate_json(text)
        except ValidationError as error:
            problems += _line_problems(error, place)
            continue
        # One byte form for one value: this also refuses equal keys, spaces and escapes that JSON would let pass.
        if line.canonical() != text:
            problems.append(_problem(place, "the canonical form of the line", repr(text)[:80]))
        lines.append(line)
    return lines, problems


def _line_problems(error: ValidationError, place: str) -> list[Problem]:
    return [
        _problem(
            f"{place}: {'.'.join(str(part) for part in issue['loc']) or 'line'}",
            issue["msg"],
            repr(issue["input"])[:80],
        )
        for issue in error.errors(include_url=False)
    ]


def _problem(where: str, expected: str, got: str) -> Problem:
    return Problem(Code.RECORD_FORM, where, expected, got, "restore the file as it was written")
