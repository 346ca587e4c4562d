"""The one leg of a probe, read from its folder; what is wrong with a rank's files is a harness fault, no conflict."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from labctl.analyze.card_evidence import LegHead
from labctl.analyze.record_reader import RecordReader
from labctl.errors import MalformedRecord
from labctl.prereg.probe_model import ProbePreregistration
from labctl.records.card_order import ProbeOrder
from labctl.records.probe import StageLine, read_rank
from labctl.records.worker import ProbePostflight, RankExit


@dataclass(frozen=True, slots=True)
class RankFiles:
    """What one rank left."""

    number: int
    lines: tuple[StageLine, ...] | None
    """None: no file, or one that is not what a rank writes."""
    exit: RankExit | None
    """None: no record of its end, or an unreadable one."""
    faults: tuple[str, ...]
    """Why something is None, one line each."""
    log: bytes | None


@dataclass(frozen=True, slots=True)
class ProbeLeg(LegHead):
    """The leg; what its folder does not hold is None."""

    order: ProbeOrder | None
    postflight: ProbePostflight | None
    ranks: tuple[RankFiles, ...]


def load_probe_leg(reader: RecordReader, head: LegHead, said: ProbePreregistration) -> ProbeLeg:
    """The leg whose head was read."""
    at = f"legs/{head.folder}"
    reader.bytes_of(f"{at}/leg.log", because=head.because)
    return ProbeLeg(
        **{field.name: getattr(head, field.name) for field in fields(head)},
        order=reader.record(f"{at}/order.json", ProbeOrder, because=head.because),
        postflight=reader.record(f"{at}/postflight.json", ProbePostflight, because=head.because),
        ranks=tuple(_rank(reader, at, number) for number in range(said.ranks)),
    )


def _rank(reader: RecordReader, at: str, number: int) -> RankFiles:
    heard = reader.leniently()
    data = heard.bytes_of(f"{at}/rank-{number}.jsonl", because=f"rank {number} was started")
    ended = heard.record(f"{at}/rank-{number}.exit.json", RankExit, because=f"rank {number} was started")
    log = heard.bytes_of(f"{at}/rank-{number}.log", because=f"rank {number} was started")
    faults = list(map(str, heard.problems))
    lines = None
    if data is not None:
        try:
            lines = read_rank(data, f"data/{at}/rank-{number}.jsonl")
        except MalformedRecord as error:
            faults += map(str, error.problems)
    return RankFiles(number=number, lines=lines, exit=ended, faults=tuple(faults), log=log)


def present_ranks(leg: ProbeLeg) -> Iterator[RankFiles]:
    """Ranks of which everything can be read."""
    return (rank for rank in leg.ranks if rank.lines is not None and rank.exit is not None)
