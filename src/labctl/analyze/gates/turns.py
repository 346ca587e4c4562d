"""Whether the legs of a run went one after the other."""

from collections.abc import Iterable
from itertools import pairwise

from labctl.analyze.card_evidence import LegHead
from labctl.analyze.evidence import LegEvidence
from labctl.analyze.gates.findings import Findings


def judge_turns(findings: Findings, legs: Iterable[LegEvidence | LegHead]) -> None:
    """Judge that each leg started after the one before had ended; legs without these records are not looked at."""
    spans = [
        (leg.name, leg.started.mono_ns, leg.exit.mono_ns)
        for leg in legs
        if leg.started is not None and leg.exit is not None
    ]
    for (earlier, _, ended_ns), (later, started_ns, _) in pairwise(spans):
        sides = (f"after the end of {earlier} at {ended_ns}", started_ns)
        findings.holds("start time", later, sides, is_met=started_ns > ended_ns)
