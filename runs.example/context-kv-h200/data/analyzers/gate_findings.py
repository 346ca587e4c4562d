"""What a gate found, and the comparison of rows that several gates make."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeGuard, TypeVar

from .row_figures import UNTOLD, Told, figure
from .run_reading import Leg
from .sealed_files import Doc

T = TypeVar("T")


@dataclass(slots=True)
class Gate:
    """What one gate found: misses (a check did not hold), gaps (a check could not be made) and figures."""

    kind: str
    id: str
    misses: list[Doc] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    figures: list[Doc] = field(default_factory=list)
    checks: int = 0
    withheld: str = ""

    def same(self, where: str, what: str, expected: object, observed: object) -> None:
        """Check that two values are equal."""
        self.checks += 1
        if expected != observed:
            sides = {"expected": str(expected)[:300], "observed": str(observed)[:300]}
            self.misses.append({"what": what, "where": where, **sides})

    def holds(self, where: str, what: str, *, is_met: bool) -> None:
        """Check a claim."""
        self.same(where, what, "this", "this" if is_met else "not this")

    def knows(self, value: T | None, where: str, what: str) -> TypeGuard[T]:
        """Note a gap where a value is absent."""
        self.gaps += [f"{where}: {what} is absent"] if value is None else []
        return value is not None

    def note(self, where: str, unit: str, **values: Fraction | int) -> None:
        """Add figures."""
        self.figures += [figure(name, where, value, unit) for name, value in values.items()]

    @property
    def result(self) -> str:
        """Whether it passed, failed, or could not be evaluated."""
        if self.withheld or not (self.misses or self.checks) or (self.gaps and not self.misses):
            return "not_evaluated"
        return "failed" if self.misses else "passed"

    @property
    def reason(self) -> str:
        """The first miss, the first gaps, or why it was withheld."""
        told = ["{where}: {what}: expected {expected}, observed {observed}".format(**miss) for miss in self.misses[:1]]
        return self.withheld or "; ".join(told or self.gaps[:5] or ([] if self.checks else ["nothing to check"]))

    def __str__(self) -> str:
        return f"gate {self.id} {self.result}: {self.reason}"

    def answer(self) -> Doc:
        """What a verdict says of this gate."""
        misses, said = [] if self.withheld else self.misses, {"id": self.id, "kind": self.kind, "figures": self.figures}
        said |= {"result": self.result, "reason": self.reason}
        return said | {"misses": misses[:50], "miss_count": len(misses)}


def equals(observed: Told, told: Told) -> bool:
    """Whether an answer is all that was told of it."""
    return all(other in (UNTOLD, one) for one, other in zip(observed, told, strict=True))


def compare(gate: Gate, legs: Iterable[Leg], expected: list[Told]) -> None:
    """Token ids, text, finish reason and prompt ids, row by row; a row without tokens equals nothing."""
    if any(told[0] is UNTOLD for told in expected):
        gate.gaps.append("teacher: token ids are absent: gate exact_text compares what it holds")
        return
    for leg in legs:
        gate.same(leg.name, "rows", len(expected), len(leg.rows))
        exact = [(row, bool(told[0]) and equals(row.told, told)) for row, told in zip(leg.rows, expected, strict=False)]
        gate.same(leg.name, "rows that differ", [], [row.number for row, is_equal in exact if not is_equal])
        gate.note(leg.name, "rows", exact_rows=sum(is_equal and not row.faults for row, is_equal in exact))
