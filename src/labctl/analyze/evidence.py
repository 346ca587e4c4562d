"""What one run says, parsed and held together: the only thing that gates see."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from labctl.analyze.counters import Counters
from labctl.analyze.stream import StreamRow
from labctl.codes import Code
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import Problem
from labctl.packet.model import EndpointPacket
from labctl.prereg.designs import drawn_order
from labctl.prereg.model import Arm
from labctl.prereg.noise import NoiseRecord
from labctl.prereg.suite import Oracle, Suite
from labctl.protocol import Event
from labctl.records.leg import LegExit, Postflight, ProcessRecord
from labctl.records.marker import Marker
from labctl.records.order import LegStarted, WorkOrder
from labctl.records.run import HostIdentity, JournalEntry, Outcome, OutcomeKind, PhaseAnswer
from labctl.records.wire import WireRow

SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class LegEvidence:
    """One start; what its folder does not hold is None or empty."""

    folder: str
    name: str
    arm: Arm
    index: int
    is_closed: bool
    manifest_sha256: str | None
    order: WorkOrder | None
    order_sha256: str | None
    started: LegStarted | None
    process: ProcessRecord | None
    postflight: Postflight | None
    exit: LegExit | None
    before: Counters | None
    after: Counters | None
    log: bytes | None
    telemetry: bytes | None
    maps: tuple[str, ...] | None
    wires: tuple[WireRow, ...]
    rows: tuple[StreamRow, ...]


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """One run, or its closed legs so far; `conflicts` is empty where every record agrees with every other."""

    packet: EndpointPacket
    packet_id: str
    marker: Marker
    marker_sha256: str
    engine: EngineVocabulary
    suite: Suite | None
    """None only where the controller was killed before it had written anything but the packet."""
    oracle: Oracle | None
    legs: tuple[LegEvidence, ...]
    journal: tuple[JournalEntry, ...]
    outcome: Outcome | None
    answers: tuple[PhaseAnswer, ...]
    conflicts: tuple[Problem, ...]
    host: HostIdentity | None = None
    """What the machine is; None where that was not recorded."""
    binary_sets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The paths in each set of compiled files by the set's key; empty where the arms differ in none."""
    noise: NoiseRecord | None = None
    """The registered noise record; None where none is, or it cannot be read."""

    @property
    def order(self) -> tuple[str, ...]:
        """The legs in the order that had to run: as registered, or the mirror that the sealed coin chose."""
        mirror = self.packet.preregistration.schedule.mirror
        return self.packet.order if mirror is None else drawn_order(self.packet.order, mirror, self.marker.nonce)

    @property
    def is_aborted(self) -> bool:
        """Whether the run was aborted."""
        return self.outcome is not None and self.outcome.outcome is OutcomeKind.ABORTED

    def was_cut_short(self, leg: str) -> bool:
        """Whether a leg belongs to an aborted run whose journal never closes it: it may hold half of anything."""
        return self.is_aborted and not is_closed_in(self.journal, leg)

    def arm(self, arm: Arm) -> tuple[LegEvidence, ...]:
        """The starts of one arm, in order."""
        return tuple(leg for leg in self.legs if leg.arm is arm)

    def pairs(self) -> tuple[tuple[LegEvidence, LegEvidence], ...]:
        """A1 with B1, A2 with B2, and so on, as far as both are there."""
        return tuple(zip(self.arm(Arm.CONTROL), self.arm(Arm.CANDIDATE), strict=False))


def is_closed_in(journal: Iterable[JournalEntry], leg: str) -> bool:
    """Whether a journal closes a leg."""
    return any(entry.event is Event.LEG_CLOSED and entry.leg == leg for entry in journal)


def conflict(where: str, expected: object, got: object) -> Problem:
    """One contradiction between two records."""
    return Problem(
        Code.RECORD_CONFLICT,
        where,
        str(expected)[:SHOWN_CHARACTERS],
        str(got)[:SHOWN_CHARACTERS],
        "treat the run as invalid; its records contradict each other",
    )


def differences(where: str, checks: Iterable[tuple[str, object, object]]) -> Iterator[Problem]:
    """A conflict for each named pair of values (expected, got) that differ."""
    for name, expected, got in checks:
        if expected != got:
            yield conflict(f"{where}: {name}", expected, got)
