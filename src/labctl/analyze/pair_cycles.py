"""What speculation did in each pair of starts: time saved in a cycle, and how far acceptance moved."""

from collections.abc import Iterator
from fractions import Fraction

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.cold import counter_delta
from labctl.analyze.speculation import cycle_ms
from labctl.records.verdict import Figure


def pair_cycle_figures(evidence: RunEvidence) -> tuple[Figure, ...]:
    """By pair, where both starts speculated: a cycle of A less one of B, and acceptance of B less that of A."""
    return tuple(one for control, candidate in evidence.pairs() for one in _figures(evidence, control, candidate))


def _figures(evidence: RunEvidence, control: LegEvidence, candidate: LegEvidence) -> Iterator[Figure]:
    where = f"{candidate.name} vs {control.name}"
    before, after = (_cycle_ms(evidence, leg) for leg in (control, candidate))
    if before is not None and after is not None:
        yield figure("cycle_saving", where, before - after, "ms")
    shares = [_share(evidence, leg) for leg in (control, candidate)]
    if shares[0] is not None and shares[1] is not None:
        yield figure("acceptance_drift", where, shares[1] - shares[0], "share")


def _cycle_ms(evidence: RunEvidence, leg: LegEvidence) -> Fraction | None:
    seconds, drafts = (_grown(evidence, leg, field) for field in ("request_decode_time_sum", "drafts"))
    return None if seconds is None or not drafts else cycle_ms(seconds, drafts)


def _share(evidence: RunEvidence, leg: LegEvidence) -> Fraction | None:
    accepted, proposed = (_grown(evidence, leg, field) for field in ("accepted_tokens", "draft_tokens"))
    return None if accepted is None or not proposed else accepted / proposed


def _grown(evidence: RunEvidence, leg: LegEvidence, field: str) -> Fraction | None:
    delta = counter_delta(evidence, leg)
    return None if delta is None else delta.grown(field)
