"""What is found wrong in a file's tree, before it has a line and a column."""

from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from labctl.codes import Code
from labctl.errors import Problem
from labctl.prereg.places import Places, TreePath


class Anchor(Enum):
    """Which end of a key-value pair a message points at."""

    KEY = "key"
    VALUE = "value"


class Finding(NamedTuple):
    """One fault: the path of the value that should change, and the three parts of its message."""

    path: TreePath
    expected: str
    got: str
    do: str
    code: Code = Code.RULE
    anchor: Anchor = Anchor.VALUE
    guess: str | None = None  # the key that was probably meant
    meant: tuple[object, ...] = ()  # the one value that was plainly meant

    def at(self, places: Places) -> Problem:
        """The problem, at its place in a file."""
        where = places.of_key(self.path) if self.anchor is Anchor.KEY else places.of_value(self.path)
        at = "" if places.values else f" at {'.'.join(map(str, self.path)) or 'the top'}"
        return Problem(self.code, where, self.expected, f"{self.got}{at}", self.do)


def before_others(problem: Problem) -> Problem:
    """A problem that hides others, and says so."""
    return replace(problem, do=f"{problem.do}; more checks follow once this much is right")
