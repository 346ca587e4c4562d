"""What is collected while a folder is looked at."""

from dataclasses import dataclass, field

from labctl.records.evidence_view import Check, EvidenceView, Finding
from labctl.records.verdict import Figure

SHOWN_CHARACTERS = 300


@dataclass(slots=True)
class ViewDraft:
    """A view that is not finished yet."""

    missing: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    metrics: list[Figure] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    topology: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def equal(self, what: str, expected: object, observed: object) -> None:
        """Keep whether two values are equal."""
        self.holds(what, (expected, observed), is_met=expected == observed)

    def holds(self, what: str, sides: tuple[object, object], *, is_met: bool) -> None:
        """Keep whether something else holds; `sides` are what must hold and what was found."""
        expected, observed = (_shown(side) for side in sides)
        self.checks.append(Check(what=what, expected=expected, observed=observed, is_met=is_met))

    def finds(self, where: str, what: str, count: int = 1) -> None:
        """Keep a finding."""
        self.findings.append(Finding(where=where, what=what, count=count))

    def view(self, folder: str, files: tuple[str, ...]) -> EvidenceView:
        """The finished view."""
        return EvidenceView(
            folder=folder,
            files=files,
            missing=tuple(self.missing),
            facts=tuple(self.facts),
            metrics=tuple(self.metrics),
            checks=tuple(self.checks),
            topology=tuple(self.topology),
            findings=tuple(self.findings),
        )


def _shown(side: object) -> str:
    text = str(side)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"
