"""What two sides gave for the same requests, whether or not they are exact between them: figures, and no judgement."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from labctl.analyze.capacity import kv_capacity_tokens, resident_bytes
from labctl.analyze.counters import CounterDelta
from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure, gain_percent, mean
from labctl.analyze.gates.exact_tokens import first_difference
from labctl.analyze.speculation import Speculation, speculation_of
from labctl.analyze.stream import StreamRow
from labctl.engines.vocabulary import EngineVocabulary
from labctl.prereg.model import Arm, CampaignClass
from labctl.records.verdict import Figure


@dataclass(frozen=True, slots=True)
class Side:
    """One or more starts that are taken for one thing."""

    name: str
    engine: EngineVocabulary
    legs: tuple[LegEvidence, ...]

    def capacity_tokens(self) -> int | None:
        """The smallest cache of the side's starts; None where one of them does not say."""
        known = [kv_capacity_tokens(self.engine, leg) for leg in self.legs]
        return None if None in known else min((size for size in known if size is not None), default=None)

    def resident_bytes(self) -> Fraction | None:
        """The mean over the starts of the largest sample; None where one has none."""
        known = [size for leg in self.legs if (size := resident_bytes(leg)) is not None]
        return mean([Fraction(size) for size in known]) if known and len(known) == len(self.legs) else None

    def speculation(self) -> Speculation | None:
        """All starts together; None where none of them counted a round."""
        off = frozenset(self.engine.off_when_absent)
        found = None
        for leg in self.legs:
            if leg.before is None or leg.after is None:
                return None
            counted = speculation_of(CounterDelta(leg.before, leg.after, off))
            if counted is not None:
                found = counted if found is None else found + counted
        return found if found is not None and found.drafts else None


def comparison_figures(evidence: RunEvidence) -> tuple[Figure, ...]:
    """The figures of a campaign of class comparison; none of any other."""
    if evidence.packet.preregistration.campaign_class is not CampaignClass.COMPARISON:
        return ()
    sides = [Side(arm.value, evidence.engine, evidence.arm(arm)) for arm in Arm]
    return tuple(side_figures(sides[0], sides[1])) if all(side.legs for side in sides) else ()


def side_figures(control: Side, candidate: Side) -> Iterator[Figure]:
    """How the candidate differs from the control, as far as both can be looked at."""
    between = f"{candidate.name} vs {control.name}"
    yield from _capacity_figures(between, control, candidate)
    yield from _memory_figures(between, control, candidate)
    yield from _speculation_figures(between, control, candidate)
    yield from _row_figures(between, control.legs[0].rows, candidate.legs[0].rows)


def _capacity_figures(between: str, control: Side, candidate: Side) -> Iterator[Figure]:
    sizes = control.capacity_tokens(), candidate.capacity_tokens()
    for side, size in zip((control, candidate), sizes, strict=True):
        if size is not None:
            yield figure("kv_capacity_tokens", side.name, size, "tokens")
    if sizes[0] and sizes[1] is not None:
        yield figure("kv_capacity_ratio", between, Fraction(sizes[1], sizes[0]), "ratio")


def _memory_figures(between: str, control: Side, candidate: Side) -> Iterator[Figure]:
    sizes = control.resident_bytes(), candidate.resident_bytes()
    for side, size in zip((control, candidate), sizes, strict=True):
        if size is not None:
            yield figure("resident_bytes", side.name, size, "bytes")
    if sizes[0] and sizes[1] is not None:
        yield figure("resident_bytes_difference", between, sizes[1] - sizes[0], "bytes")
        yield figure("resident_bytes_gain", between, gain_percent(sizes[1], sizes[0]), "percent")


def _speculation_figures(between: str, control: Side, candidate: Side) -> Iterator[Figure]:
    counted = control.speculation(), candidate.speculation()
    for side, one in zip((control, candidate), counted, strict=True):
        if one is not None:
            yield from one.rates(side.name)
            yield from one.survival_figures(side.name)
    rates = [None if one is None else one.acceptance_rate for one in counted]
    if rates[0] is not None and rates[1] is not None:
        yield figure("acceptance_rate_difference", between, rates[1] - rates[0], "share")


def _row_figures(between: str, control: tuple[StreamRow, ...], candidate: tuple[StreamRow, ...]) -> Iterator[Figure]:
    differing = abs(len(control) - len(candidate))
    for one, other in zip(control, candidate, strict=False):
        place = first_difference(other.token_ids, one.token_ids)
        is_other_end = (one.text_sha256, one.finish_reason) != (other.text_sha256, other.finish_reason)
        differing += place is not None or is_other_end
        if place is not None:
            yield figure("first_difference", f"row {one.row}", place, "token, from 0")
    yield figure("differing_rows", between, differing, f"of {max(len(control), len(candidate))} rows")
