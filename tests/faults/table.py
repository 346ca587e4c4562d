"""The table of all known faults, as data and as a page; `python -m tests.faults.table` writes docs/faults.md."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labctl.codes import Code
from tests.faults.registry import INJECTIONS

TOP = Path(__file__).parents[2]
DATA = Path(__file__).with_name("table.toml")
PAGE = TOP / "docs" / "faults.md"
KNOWN = 151
HEAD = """\
# Every known fault, and what answers it

Made by `make docs` from `tests/faults/table.toml` and `src/labctl/codes.py`; do not edit. {counts}

The default behind every row: fail closed, name the code, change nothing. An answer is a code; a gate or a verdict of
the analysis; *design*, where the fault cannot happen or cannot do harm; *build*, a check of the build; or *open*, where
labctl has no full answer yet. The exit status is that of the command that meets the fault; a dash means that none ends
because of it. Tests are named below `tests/`.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One row."""

    number: str
    answer: str
    exit_status: int
    line: str
    tests: tuple[str, ...]

    @property
    def code(self) -> str | None:
        """The code that answers it, where one does."""
        return self.answer if self.answer.isupper() else None


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What answers several faults."""

    name: str
    where: str
    what: str
    reason: str
    faults: tuple[Fault, ...]


def read_table() -> tuple[Mechanism, ...]:
    """The table as it stands in its file."""
    document = tomllib.loads(DATA.read_text("utf-8"))
    return tuple(
        Mechanism(
            one["name"],
            one["where"],
            one["what"],
            one.get("reason", ""),
            tuple(_fault(row) for row in one["faults"]),
        )
        for one in document["mechanism"]
    )


def _fault(row: list[Any]) -> Fault:
    return Fault(row[0], row[1], row[2], row[3], tuple(row[4:]))


def code_meanings() -> dict[Code, str]:
    """What each code means, from the comments in its module."""
    text = (TOP / "src" / "labctl" / "codes.py").read_text("utf-8")
    found = re.findall(r'^    ([A-Z_]+) = (?:\(\n +)?"\1"(?:  # (.*))?$', text, re.MULTILINE)
    return {Code(name): re.sub(r"^noqa: \S+ \(a code; (.*)\)$", r"\1", meaning) for name, meaning in found}


def is_there(node: str) -> bool:
    """Whether a test exists."""
    file, _, name = node.partition("::")
    path = TOP / "tests" / file
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text("utf-8"), re.MULTILINE) is not None


def page() -> str:
    """The whole page."""
    mechanisms = read_table()
    faults = [fault for one in mechanisms for fault in one.faults]
    unanswered = sum(fault.answer == "open" for fault in faults)
    counts = f"{len(faults)} faults, {len(mechanisms) - 1} mechanisms, {len(Code)} codes; {unanswered} faults are open."
    last, *first = (mechanisms[-1], *mechanisms[:-1])
    blocks = [HEAD.format(counts=counts), *(_block(one) for one in (last, *first)), _codes()]
    return "\n".join(blocks)


def _block(mechanism: Mechanism) -> str:
    title = f"## {mechanism.name}" + (f" (`{mechanism.where}`)" if mechanism.where else "")
    reason = f" A mechanism for one fault, because {mechanism.reason}." if mechanism.reason else ""
    said = mechanism.what[0].upper() + mechanism.what[1:]
    return "\n".join([title, "", f"{said}.{reason}", "", *_rows(mechanism.faults), ""])


def _rows(faults: tuple[Fault, ...]) -> Iterator[str]:
    yield "| fault | answer | exit | what happens | test |"
    yield "|---|---|---|---|---|"
    for fault in sorted(faults, key=lambda one: int(one.number[1:])):
        answer = f"`{fault.answer}`" if fault.code or ":" in fault.answer else fault.answer
        tests = "<br>".join(f"`{node}`" for node in fault.tests)
        yield f"| {fault.number} | {answer} | {fault.exit_status or '-'} | {fault.line} | {tests} |"


def _codes() -> str:
    where = "Each has one injection in `tests/faults/registry.py` that ends in this code and no other."
    lines = ["## Codes", "", where, "", "| code | meaning | injection | faults |", "|---|---|---|---|"]
    answered: dict[str, list[str]] = {}
    for fault in (fault for one in read_table() for fault in one.faults):
        answered.setdefault(fault.answer, []).append(fault.number)
    for code, meaning in code_meanings().items():
        injection = (INJECTIONS[code].__doc__ or "").rstrip(".")
        lines.append(f"| `{code}` | {meaning} | {injection} | {', '.join(answered.get(code, []))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
