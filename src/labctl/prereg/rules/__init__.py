"""The rules between fields: each yields what contradicts it, and every one is asked."""

from collections.abc import Callable, Iterator

from labctl.prereg.finding import Finding
from labctl.prereg.model import Preregistration
from labctl.prereg.rules.answers import ANSWER_RULES
from labctl.prereg.rules.arms import ARM_RULES
from labctl.prereg.rules.claims import CLAIM_RULES
from labctl.prereg.rules.files import host_findings, oracle_findings, suite_findings
from labctl.prereg.rules.gates import GATE_RULES
from labctl.prereg.rules.schedule import SCHEDULE_RULES
from labctl.prereg.rules.service import SERVICE_RULES
from labctl.prereg.rules.start_gates import START_GATE_RULES
from labctl.prereg.rules.start_statistics import START_STATISTICS_RULES

__all__ = ["host_findings", "oracle_findings", "preregistration_findings", "suite_findings"]

_RULES: tuple[Callable[[Preregistration], Iterator[Finding]], ...] = (
    *SERVICE_RULES,
    *ARM_RULES,
    *SCHEDULE_RULES,
    *GATE_RULES,
    *ANSWER_RULES,
    *START_GATE_RULES,
    *START_STATISTICS_RULES,
    *CLAIM_RULES,
)


def preregistration_findings(preregistration: Preregistration) -> Iterator[Finding]:
    """Everything that contradicts itself within one preregistration."""
    for rule in _RULES:
        yield from rule(preregistration)
