"""One start in which everything but time is sound: its records, its counters, and rows whose tokens never differ."""

from fractions import Fraction

from labctl.analyze.counters import Counters, Labels
from labctl.analyze.evidence import LegEvidence
from labctl.analyze.payload import Usage
from labctl.analyze.stream import RowClock, StreamRow, TokenEvent
from labctl.digest import sha256_hex
from labctl.engines.reference import VERSION
from labctl.packet.model import EndpointPacket
from labctl.prereg.model import Arm
from labctl.records.leg import LegExit, Listener, Postflight, ProcessRecord, ProcessSeen, Readiness, StopCause
from labctl.records.order import LegStarted, WorkOrder
from labctl.simulate.cells import PROMPTS
from labctl.simulate.sound_order import BOOT, TOKENS, sound_order

NS_PER_S = 1_000_000_000
ROW_NS = 60 * NS_PER_S
START_NS = 1000 * ROW_NS
TREATED_LINE = b"INFO the treatment is on\n"


def sound_leg(packet: EndpointPacket, name: str, index: int) -> LegEvidence:
    """A start of a flawless run, by its name and its place in the order."""
    order = sound_order(packet, name, index)
    start_ns = index * START_NS
    log = b"INFO ready\n" + (TREATED_LINE if order.arm is Arm.CANDIDATE else b"")
    return LegEvidence(
        folder=f"{index:02d}-{name}",
        name=name,
        arm=order.arm,
        index=index,
        is_closed=True,
        manifest_sha256="0" * 64,
        order=order,
        order_sha256="0" * 64,
        started=_started(name, start_ns),
        process=_process(order, start_ns),
        postflight=_postflight(start_ns, log),
        exit=_exit(name, start_ns + START_NS - 1),
        before=_counters(0),
        after=_counters(PROMPTS),
        log=log,
        telemetry=None,
        maps=("/usr/lib/libc.so.6\t08:01 1",),
        wires=(),
        rows=tuple(_row(number, start_ns, order.nonce) for number in range(1, PROMPTS + 1)),
    )


def _started(name: str, at_ns: int) -> LegStarted:
    return LegStarted(leg=name, order_sha256="0" * 64, pid=2, start_ticks=2, boot_id=BOOT, wall_ns=0, mono_ns=at_ns)


def _exit(name: str, at_ns: int) -> LegExit:
    cause = StopCause.COMPLETED
    return LegExit(leg=name, cause=cause, problems=(), rows_completed=PROMPTS, wall_ns=0, mono_ns=at_ns)


def _row(number: int, start_ns: int, nonce: str) -> StreamRow:
    sent_ns = start_ns + number * ROW_NS
    ids = tuple((31 * number + place * place) % 1009 for place in range(TOKENS))
    return StreamRow(
        row=number,
        prompt_id=f"p{number:02d}",
        token_ids=ids,
        events=(TokenEvent(sent_ns + 1_000_000, TOKENS, is_coalesced=False),),
        text=" ".join(map(str, ids)),
        finish_reason="length",
        usage=Usage(2, TOKENS, 0),
        prompt_token_ids=(number, number),
        models=(f"labctl-{nonce}",),
        clock=RowClock("kernel", sent_ns - 1000, sent_ns, sent_ns + 1_000_000, sent_ns + ROW_NS // 2),
        faults=(),
    )


def _process(order: WorkOrder, start_ns: int) -> ProcessRecord:
    listener = Listener(address="0100007F:0400", inode=3, owner_pids=(3,))
    return ProcessRecord(
        root=ProcessSeen(
            pid=3,
            parent_pid=2,
            start_ticks=3,
            executable="/python",
            argv=order.argv,
            environment=order.environment,
            environment_other=(),
        ),
        tree=(),
        listeners=(listener,),
        listeners_after=(listener,),
        roots_after=(3,),
        readiness=Readiness(
            process_started_mono_ns=start_ns + 1,
            ready_mono_ns=start_ns + 2,
            attempts=1,
            version_body=f'{{"version":"{VERSION}"}}',
            models_body="",
            served_model=f"labctl-{order.nonce}",
        ),
    )


def _postflight(start_ns: int, log: bytes) -> Postflight:
    return Postflight(
        stop_signal_mono_ns=start_ns + START_NS - 3,
        ended_mono_ns=start_ns + START_NS - 2,
        exit_status=0,
        killed=(),
        processes_left=(),
        listeners_left=(),
        shared_memory_left=(),
        log_bytes=len(log),
        log_sha256=sha256_hex(log),
    )


def _counters(rows: int) -> Counters:
    counted = {
        "prompt_tokens": 2 * rows,
        "generation_tokens": TOKENS * rows,
        "preemptions": 0,
        "prefix_cache_queries": 0,
        "prefix_cache_hits": 0,
        "requests_running": 0,
        "requests_waiting": 0,
        "process_start_time": 1_800_000_000,
    }
    values: dict[str, dict[Labels, Fraction]] = {name: {(): Fraction(value)} for name, value in counted.items()}
    return Counters(values | {"requests_succeeded": {(("finished_reason", "length"),): Fraction(rows)}})
