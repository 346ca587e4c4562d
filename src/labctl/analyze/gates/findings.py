"""What a gate collects while it looks, and the outcome that follows from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from labctl.records.verdict import Figure, GateOutcome, GateResult, Miss

KEPT_MISSES = 50
SHOWN_CHARACTERS = 300


@dataclass(slots=True)
class Findings:
    """Misses (a check did not hold), gaps (a check could not be made) and figures of one gate."""

    gate_id: str
    kind: str
    misses: list[Miss] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    checks: int = 0

    def equal(self, what: str, where: str, expected: object, observed: object) -> None:
        """Check that two values are equal."""
        self.holds(what, where, (expected, observed), is_met=expected == observed)

    def holds(self, what: str, where: str, sides: tuple[object, object], *, is_met: bool) -> None:
        """Check something else; `sides` are what must hold and what was found, for the record."""
        self.checks += 1
        if not is_met:
            expected, observed = sides
            self.misses.append(Miss(what=what, where=where, expected=_shown(expected), observed=_shown(observed)))

    def lacks(self, what: str) -> None:
        """Note that something could not be checked because its evidence is not there."""
        self.gaps.append(what)

    def add(self, figures: Iterable[Figure]) -> None:
        """Keep figures."""
        self.figures.extend(figures)

    def outcome(self) -> GateOutcome:
        """Failed where anything missed, else not evaluated where anything lacked, else passed."""
        result, reason = GateResult.PASSED, ""
        if self.misses:
            first = self.misses[0]
            result = GateResult.FAILED
            reason = f"{first.where}: {first.what}: expected {first.expected}, observed {first.observed}"
        elif self.gaps or not self.checks:
            result = GateResult.NOT_EVALUATED
            reason = "; ".join(self.gaps[:5]) or "nothing was there to check"
        return GateOutcome(
            id=self.gate_id,
            kind=self.kind,
            result=result,
            reason=reason,
            figures=tuple(self.figures),
            misses=tuple(self.misses[:KEPT_MISSES]),
            miss_count=len(self.misses),
        )


def withheld(outcome: GateOutcome, reason: str) -> GateOutcome:
    """The same gate, not evaluated for a reason outside it; its figures stay as a diagnostic."""
    return GateOutcome(
        id=outcome.id,
        kind=outcome.kind,
        result=GateResult.NOT_EVALUATED,
        reason=reason,
        figures=outcome.figures,
        misses=(),
        miss_count=0,
    )


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"
