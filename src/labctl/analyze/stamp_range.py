"""Where the stamps of one row can have been, given the monotonic times that were taken beside them."""

from collections.abc import Iterator

from labctl.records.wire import WireRow

CLOCK_TOLERANCE_NS = 1_000_000
"""How far two clocks may drift apart during a row; a row during which they moved further does not count anyway."""
DELAY_TOLERANCE_NS = 25_000_000
"""How long a client may have been kept from the processor between a system call and its look at the clock; the longest
wait seen on a busy host of two cores was 10 ms."""


def misplaced_stamps(wire: WireRow) -> Iterator[str]:
    """Every wall-clock stamp that the monotonic times beside it rule out.

    A read took everything that had arrived, so what the next read brought arrived after it; and nothing arrives after
    the read that brought it, nor before the request began.
    """
    offset_ns = wire.opened.clock_offset_ns
    looks = [("connect_started", wire.connect_started.realtime_ns, wire.connect_started.mono_ns)]
    looks += [("sent", write.realtime_ns, write.mono_before_ns) for write in wire.sent]
    for name, realtime_ns, mono_ns in looks:
        if not -DELAY_TOLERANCE_NS <= realtime_ns - offset_ns - mono_ns <= CLOCK_TOLERANCE_NS:
            yield f"{name}: {realtime_ns - offset_ns} ns, looked at beside {mono_ns} ns"
    begun_ns = wire.sent[0].mono_before_ns if wire.sent else wire.connect_started.mono_ns
    earliest_ns = begun_ns - CLOCK_TOLERANCE_NS
    for number, read in enumerate(wire.reads, start=1):
        arrived_ns = read.mono_ns if read.kernel_ns is None else read.kernel_ns - offset_ns
        if not earliest_ns <= arrived_ns <= read.mono_ns + CLOCK_TOLERANCE_NS:
            yield f"read {number}: {arrived_ns} ns, not between {earliest_ns} and {read.mono_ns} ns"
        earliest_ns = read.mono_ns - DELAY_TOLERANCE_NS
