"""Two sealed starts of whatever runs, side by side, where both were asked the same."""

from collections.abc import Iterator
from dataclasses import dataclass

from labctl.analyze.comparison import Side, side_figures
from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure, gain_percent
from labctl.analyze.load import load_evidence
from labctl.analyze.served import engine_served
from labctl.analyze.stream import StreamRow
from labctl.analyze.timing import RATE, headline
from labctl.codes import Code
from labctl.errors import BrokenEvidence, NotFound, Problem, Refused
from labctl.prereg.field_types import MetricId
from labctl.records.order import Requests
from labctl.records.start_comparison import ComparedStart, StartComparison
from labctl.records.verdict import Figure
from labctl.seal.verify import SealedRun

SHOWN_CHARACTERS = 80
BETWEEN = "second vs first"


@dataclass(frozen=True, slots=True)
class SealedStart:
    """One start of a sealed run whose records agree with each other."""

    run: SealedRun
    evidence: RunEvidence
    leg: LegEvidence
    requests: Requests

    def side(self, name: str) -> Side:
        """The start as a side of a comparison."""
        return Side(name, self.evidence.engine, (self.leg,))


def open_sealed_start(run: SealedRun, leg: str | None) -> SealedStart:
    """One start of a run, by name; the run's first where none is named.

    Raises:
        BrokenEvidence: records of the run contradict each other.
        NotFound: there is no such start, or it was never asked anything.
    """
    evidence = load_evidence(run, run.outcome)
    if evidence.conflicts:
        raise BrokenEvidence(evidence.conflicts)
    names = [one.name for one in evidence.legs]
    found = next((one for one in evidence.legs if leg in (None, one.name)), None)
    if found is None or found.order is None or not found.rows:
        expected = f"a measured start, one of {', '.join(names) or 'none'}"
        do = "name the start as RUN:LEG"
        raise NotFound(Problem(Code.NOT_FOUND, run.run_dir, expected, leg or "no start", do))
    return SealedStart(run, evidence, found, found.order.requests)


def compare_starts(first: SealedStart, second: SealedStart) -> StartComparison:
    """Put two starts side by side.

    Raises:
        Refused: they were not asked the same; holds every difference.
    """
    if problems := tuple(_request_problems(first, second)):
        raise Refused(problems)
    figures = [*_speed_figures(first.leg, second.leg), *side_figures(first.side("first"), second.side("second"))]
    return StartComparison(
        starts=(_told(first, "first"), _told(second, "second")),
        rows=len(first.requests.prompts),
        figures=tuple(figures),
        doubts=tuple(dict.fromkeys(_doubts(first, second))),
    )


def _told(start: SealedStart, side: str) -> ComparedStart:
    return ComparedStart.model_validate(
        {
            "side": side,
            "run": start.run.run_dir,
            "seal_sha256": start.run.seal_sha256,
            "leg": start.leg.name,
            "campaign": start.evidence.packet.preregistration.id,
            "engine": engine_served(start.evidence),
        }
    )


def _request_problems(first: SealedStart, second: SealedStart) -> Iterator[Problem]:
    where = f"{second.run.run_dir}:{second.leg.name}"
    do = "compare starts that were asked the same"
    for name in Requests.model_fields:
        expected, got = getattr(first.requests, name), getattr(second.requests, name)
        if expected != got:
            sides = (_shown(name, expected, got), _shown(name, got, expected))
            yield Problem(Code.RECORD_CONFLICT, f"{where}: {name}", *sides, do)
    pairs = zip(first.leg.rows, second.leg.rows, strict=False)
    # A template or a tokenizer of another kind makes another request of the same text.
    if differing := [(one, other) for one, other in pairs if _was_read_otherwise(one, other)]:
        one, other = differing[0]
        sides = (_read_as(one), f"{_read_as(other)}; {len(differing)} rows differ")
        yield Problem(Code.RECORD_CONFLICT, f"{where}: tokens of the prompt, row {other.row}", *sides, do)


def _was_read_otherwise(one: StreamRow, other: StreamRow) -> bool:
    sides = one.prompt_ids_sha256, other.prompt_ids_sha256
    return None not in sides and sides[0] != sides[1]


def _read_as(row: StreamRow) -> str:
    return f"{len(row.prompt_token_ids or ())} tokens, {str(row.prompt_ids_sha256)[:12]}"


def _shown(name: str, one: object, other: object) -> str:
    if name != "prompts" or not isinstance(one, tuple) or not isinstance(other, tuple):
        return str(one)[:SHOWN_CHARACTERS]
    differing = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if differing is None:
        return f"{len(one)} prompts"
    return f"prompt {differing + 1} {one[differing].id}: {one[differing].text or one[differing].messages}"[
        :SHOWN_CHARACTERS
    ]


def _speed_figures(first: LegEvidence, second: LegEvidence) -> Iterator[Figure]:
    for metric in MetricId:
        speeds = headline(first.rows, metric), headline(second.rows, metric)
        for side, speed in zip(("first", "second"), speeds, strict=True):
            if speed is not None:
                yield figure(metric.value, side, speed, RATE)
        if speeds[0] and speeds[1] is not None:
            yield figure(f"{metric.value}_gain", BETWEEN, gain_percent(speeds[1], speeds[0]), "percent")


def _doubts(first: SealedStart, second: SealedStart) -> Iterator[str]:
    packets = first.evidence.packet, second.evidence.packet
    markers = first.evidence.marker.host, second.evidence.marker.host
    pairs = (
        ("machine", *(one.machine_id_sha256 for one in markers)),
        ("boot", *(one.boot_id for one in markers)),
        ("engine", *(engine_served(one.evidence) for one in (first, second))),
        ("files of the models", *(tuple(model.manifest_sha256 for model in one.models) for one in packets)),
        ("interpreter", *(one.interpreter.resolved_sha256 for one in packets)),
    )
    yield "nobody registered this comparison in advance; one start of each says nothing of other starts"
    for name, one, other in pairs:
        if one != other:
            yield f"the starts differ in {name} as well"
    if any(row.prompt_ids_sha256 is None for start in (first, second) for row in start.leg.rows):
        yield "a server does not say which tokens it read, so the requests may differ in them"
    for start in (first, second):
        if faulty := sum(bool(row.faults) for row in start.leg.rows):
            yield f"{start.run.run_dir}:{start.leg.name}: {faulty} rows do not count"
        if start.evidence.engine.is_stand_in:
            yield f"{start.run.run_dir}: the service is labctl's embedded endpoint, not a language model"
