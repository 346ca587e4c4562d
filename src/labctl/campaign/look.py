"""One thing that preflight looks at."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from labctl.codes import Code
from labctl.errors import LabctlError, Problem


@dataclass(frozen=True, slots=True)
class Look:
    """One check."""

    name: str
    code: Code
    expected: str
    observed: str
    is_met: bool
    do: str = ""

    def problem(self, step: str) -> Problem:
        """What is wrong where it does not hold."""
        return Problem(self.code, f"{step} {self.name}", self.expected, self.observed, self.do)


def attempted(name: str, expected: str, action: Callable[[], object], where: str) -> Iterator[Look]:
    """A check that either goes through or raises what is wrong."""
    try:
        action()
    except LabctlError as error:
        for problem in error.problems:
            yield Look(name, problem.code, problem.expected, problem.got, is_met=False, do=problem.do)
    else:
        yield Look(name, Code.PREFLIGHT, expected, f"holds for {where}", is_met=True)
