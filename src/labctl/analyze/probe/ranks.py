"""What one rank proved: stages that it wrote down once each and in order, and whose facts bear them out."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

from labctl.analyze.probe.expected import brought_sha256, reduced_sha256, shift_of
from labctl.prereg.probe_model import ProbePreregistration
from labctl.records.probe import (
    STAGES,
    DeviceSet,
    GroupInitialised,
    ImportDone,
    RankFailed,
    ReduceDone,
    ReduceStarted,
    ResultVerified,
    StageLine,
    TeardownDone,
    TensorAllocated,
)

Check = tuple[str, object, object]
SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Expected:
    """What the records of all ranks are held against."""

    said: ProbePreregistration
    nonce: str


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank, as far as its file tells."""

    number: int
    lines: tuple[StageLine, ...]
    exit_status: int | None
    """None where it did not exit by itself."""

    def stages(self) -> tuple[StageLine, ...]:
        """Its lines without the one that says why it ended."""
        return tuple(line for line in self.lines if not isinstance(line, RankFailed))

    def failure(self) -> str:
        """Why the rank ended where it did, in its own words."""
        last = self.lines[-1] if self.lines else None
        if not isinstance(last, RankFailed):
            return "not reached"
        return f"{last.detail.exception}: {last.detail.message}"[:SHOWN_CHARACTERS]


def form_faults(rank: Rank, expected: Expected) -> Iterator[Check]:
    """What no rank would write: stages twice or out of order, another rank or nonce, times that go back."""
    found = [line.stage for line in rank.stages()]
    yield "stages, each once and in order", list(STAGES[: len(found)]), found
    yield "rank of every line", {rank.number}, {line.rank for line in rank.lines} or {rank.number}
    yield "nonce of every line", {expected.nonce}, {line.nonce for line in rank.lines} or {expected.nonce}
    yield "processes behind the lines", min(1, len(rank.lines)), len({line.pid for line in rank.lines})
    yield "last words at the end", [], [line.stage for line in rank.lines[:-1] if isinstance(line, RankFailed)]
    is_ordered = all(one.mono_ns <= other.mono_ns for one, other in pairwise(rank.lines))
    yield "times that go on", True, is_ordered


def proved_stages(rank: Rank, expected: Expected) -> tuple[str, ...]:
    """The stages that a rank proved, up to the first that it did not."""
    proved: list[str] = []
    for line in rank.stages():
        if any(wanted != found for _, wanted, found in stage_checks(line, rank.number, expected)):
            break
        proved.append(line.stage)
    return tuple(proved)


def stage_checks(line: StageLine, rank: int, expected: Expected) -> Iterator[Check]:
    """What the facts of one stage must be; the rank's word alone proves nothing that can be computed."""
    collective, ranks = expected.said.collective, expected.said.ranks
    match line:
        case DeviceSet():
            is_seen_alone = expected.said.cards.vendor != "cpu"
            yield "visible devices", 1 if is_seen_alone else line.detail.visible, line.detail.visible
        case GroupInitialised():
            told = (line.detail.backend, line.detail.world_size, line.detail.group_rank)
            yield "backend, ranks and rank of the group", (expected.said.backend, ranks, rank), told
        case TensorAllocated():
            told = (line.detail.dtype, line.detail.elements, line.detail.shift)
            yield "type, elements and shift", (collective.dtype, collective.elements, shift_of(expected.nonce)), told
            yield "digest of the tensor", brought_sha256(collective, rank, expected.nonce), line.detail.sha256
        case ResultVerified():
            yield "digest of the result", reduced_sha256(collective, ranks, expected.nonce), line.detail.sha256
        case ImportDone() | ReduceStarted() | ReduceDone() | TeardownDone() | RankFailed():
            pass
        case _:
            assert_never(line)
