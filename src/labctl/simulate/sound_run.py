"""A run in which everything but time is sound: the evidence that a flawless campaign of four or more starts leaves.

Only the arrivals of tokens differ from one simulated campaign to the next; every gate judges all of the rest each time.
"""

from dataclasses import dataclass, replace

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.stream import StreamRow, TokenEvent
from labctl.engines.reference import VOCABULARY
from labctl.packet.model import EndpointPacket
from labctl.records.marker import Marker, MarkerHost
from labctl.records.run import Outcome, OutcomeKind
from labctl.simulate.rule_sets import RuleSet
from labctl.simulate.sound_leg import sound_leg
from labctl.simulate.sound_order import BOOT, MACHINE, NONCE, TOKENS
from labctl.simulate.sound_packet import sound_packet, sound_suite


@dataclass(frozen=True, slots=True)
class SoundRun:
    """The evidence without its times."""

    evidence: RunEvidence

    @classmethod
    def of(cls, rules: RuleSet, order: tuple[str, ...]) -> "SoundRun":
        """The run of a campaign with these rules and this order."""
        packet = sound_packet(rules, order)
        legs = tuple(sound_leg(packet, name, index) for index, name in enumerate(order, start=1))
        completed = Outcome(outcome=OutcomeKind.COMPLETED, cause=None, detail=(), legs_closed=order)
        evidence = RunEvidence(
            packet=packet,
            packet_id=packet.id,
            marker=_marker(packet),
            marker_sha256="0" * 64,
            engine=VOCABULARY,
            suite=sound_suite(),
            oracle=None,
            legs=legs,
            journal=(),
            outcome=completed,
            answers=(),
            conflicts=(),
        )
        return cls(evidence)

    def with_arrivals(self, spans_ns: list[list[int]]) -> RunEvidence:
        """The run in which the 100th token of each row comes so long after its first, by start and prompt."""
        legs = tuple(
            replace(leg, rows=tuple(_timed(row, span_ns) for row, span_ns in zip(leg.rows, spans, strict=True)))
            for leg, spans in zip(self.evidence.legs, spans_ns, strict=True)
        )
        return replace(self.evidence, legs=legs)


def _timed(row: StreamRow, span_ns: int) -> StreamRow:
    """The row with its first token, the 98 between (which no rate looks at), and its 100th."""
    first_ns = row.events[0].arrival_ns
    events = (
        TokenEvent(first_ns, 1, is_coalesced=False),
        TokenEvent(first_ns + span_ns // 2, TOKENS - 2, is_coalesced=False),
        TokenEvent(first_ns + span_ns, 1, is_coalesced=False),
    )
    return replace(row, events=events)


def _marker(packet: EndpointPacket) -> Marker:
    return Marker(
        kind=packet.kind,
        packet_sha256=packet.id,
        prereg_sha256=packet.prereg_yaml_sha256,
        git_commit=packet.repository.commit,
        tree_dirhash=packet.repository.tree_dirhash,
        order=packet.order,
        run_dir="simulated",
        nonce=NONCE,
        host=MarkerHost(machine_id_sha256=MACHINE, boot_id=BOOT, controller_pid=1, controller_start_ticks=1),
        approvals=(),
        file_systems={},
        rehearsal_seal_sha256=None,
        wall_ns=0,
        mono_ns=0,
    )
