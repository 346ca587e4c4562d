"""Evidence whose starts have given speeds and nothing else of interest: `evidence_with_speeds(A1=100, B1=[90, 110])`.

A number is the rate in tokens/s of every row, a list gives one rate a row; None is a row that does not count. Every
rate must divide 10^9. The metric to look at is `decode_rate_full`.
"""

from typing import cast

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.payload import RowFault, Usage
from labctl.analyze.stream import RowClock, StreamRow, TokenEvent
from labctl.engines.reference import VOCABULARY
from labctl.packet.model import EndpointPacket
from labctl.prereg.model import Arm
from labctl.records.marker import Marker
from tests.fakes.run_builder import RunBuilder

NS_PER_S = 10**9
Speeds = int | list[int | None]


def evidence_with_speeds(**speeds: Speeds) -> RunEvidence:
    """A run whose legs are the keyword's names, in their order."""
    builder = RunBuilder(order=tuple(speeds), stops=False)
    packet: EndpointPacket = builder.frozen_packet()
    return RunEvidence(
        packet=packet,
        packet_id=packet.id,
        marker=cast("Marker", None),
        marker_sha256="",
        engine=VOCABULARY,
        suite=builder.suite,
        oracle=None,
        legs=tuple(_leg(name, index, given) for index, (name, given) in enumerate(speeds.items(), start=1)),
        journal=(),
        outcome=None,
        answers=(),
        conflicts=(),
    )


def _leg(name: str, index: int, given: Speeds) -> LegEvidence:
    rates = given if isinstance(given, list) else [given, given]
    return LegEvidence(
        folder=f"{index:02d}-{name}",
        name=name,
        arm=Arm.of_leg(name),
        index=index,
        is_closed=True,
        manifest_sha256=None,
        order=None,
        order_sha256=None,
        started=None,
        process=None,
        postflight=None,
        exit=None,
        before=None,
        after=None,
        log=None,
        telemetry=None,
        maps=None,
        wires=(),
        rows=tuple(_row(number, rate) for number, rate in enumerate(rates, start=1)),
    )


def _row(number: int, rate: int | None) -> StreamRow:
    gap_ns = NS_PER_S // (rate or 1)
    return StreamRow(
        row=number,
        prompt_id=f"p{number:02d}",
        token_ids=(1, 2),
        events=(TokenEvent(1000, 1, is_coalesced=False), TokenEvent(1000 + gap_ns, 1, is_coalesced=False)),
        text="",
        finish_reason="length",
        usage=Usage(1, 2, 0),
        prompt_token_ids=(1,),
        models=("m",),
        clock=RowClock("kernel", 0, 500, 1000, 1000 + gap_ns),
        faults=((RowFault.CLOCK_STEP, ""),) if rate is None else (),
    )
