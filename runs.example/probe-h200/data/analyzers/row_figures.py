"""One row, and the registry's formulas for it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise

from .sealed_files import Doc, canonical, sha256
from .wire_reading import Answer, Lines, read_events, read_response

Told = tuple[object, ...]
UNTOLD = object()
"""Stands for what a teacher does not say; nothing can be compared with it."""

# One row, and the registry's formulas for it.
DELAY_TOLERANCE_NS = 25_000_000  # how long a client may be kept from looking at the clock after a system call
CLOCK_TOLERANCE_NS, NS_PER_S, WINDOW = 1_000_000, 10**9, 100
CONVENTIONAL, LEGACY = "decode_rate_conventional_1_100", "decode_rate_legacy_100_1_100"
ONE_OFF_NS, ONE_OFF_TIMES = 100_000_000, 20
GAPS = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100), "max": Fraction(1)}


@dataclass(slots=True)
class Row:
    """One row, as far as its bytes tell; `faults` are of its answer, `doubts` of its stamps.

    An event is its stamp, its tokens, and whether its read held another; metrics (tokens/s, ns) are of rows that count.
    """

    lines: Lines
    number: int
    answer: Answer = field(default_factory=Answer)
    events: list[tuple[int, int, bool]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    metrics: dict[str, Fraction] = field(default_factory=dict)

    @property
    def coalesced(self) -> int:
        """Tokens of events that shared a read with another."""
        return sum(tokens for _, tokens, is_shared in self.events if is_shared)

    @property
    def told(self) -> Told:
        """What exactness compares: token ids, text, finish reason and prompt ids."""
        prompts = [sha256(canonical(ids)) for ids in self.answer.prompts]
        text = sha256("".join(self.answer.texts).encode())
        return self.answer.ids, text, next(iter(self.answer.finishes), None), next(iter(prompts), None)

    @classmethod
    def read(cls, lines: Lines, received: bytes) -> "Row":
        """A row from its stamps and the bytes that were received."""
        opened, closed, reads = lines["opened"][0], lines["closed"][0], lines["read"]
        row, is_kernel = cls(lines, opened["row"]), all(read["kernel_ns"] is not None for read in reads)
        stamps = [read["kernel_ns" if is_kernel else "mono_ns"] for read in reads]
        moved = {name: abs(closed[name] - opened[name]) for name in ("clock_offset_ns", "boottime_minus_monotonic_ns")}
        row.doubts += [f"{name} moved by {ns} ns" for name, ns in moved.items() if ns > CLOCK_TOLERANCE_NS]
        row.doubts += [] if stamps == sorted(stamps) else ["stamp_order"]
        row.doubts += _misplaced(lines)
        row.faults += [] if closed["ended"] in ("complete", "status_not_200") else [f"transport: {closed['ended']}"]
        try:
            body = read_response(received)
        except ValueError as error:
            row.faults.append(f"response: {error}")
            return row
        row._read_answer(body, stamps)
        if not row.faults and not row.doubts and row.events and lines["sent"]:
            clock = ("realtime_ns", "realtime_ns") if is_kernel else ("mono_ns", "mono_before_ns")
            row._measure(lines["connect_started"][0][clock[0]], lines["sent"][-1][clock[1]])
        return row

    def _read_answer(self, body: list[tuple[int, bytes]], stamps: list[int]) -> None:
        events, is_whole = read_events(b"".join(portion for _, portion in body))
        for number, (name, data, _) in enumerate(events):
            self.answer.take(number, name, data)
        self.answer.close()
        self.faults += [*([] if is_whole else ["cut_event"]), *self.answer.faults]
        starts = list(accumulate((len(portion) for _, portion in body), initial=0))
        ends = list(accumulate(read["length"] for read in self.lines["read"]))
        held = []
        for number, _ in self.answer.sizes:
            place = events[number][2]  # the byte that completed the event, first in the body and then on the wire
            portion = bisect_right(starts, place) - 1
            held.append(bisect_right(ends, body[portion][0] + place - starts[portion]))
        for at, (read, (_, tokens)) in enumerate(zip(held, self.answer.sizes, strict=True)):
            self.events.append((stamps[read], tokens, read in held[max(at - 1, 0) : at] + held[at + 1 : at + 2]))

    def _measure(self, connect_ns: int, sent_ns: int) -> None:
        first_ns, last_ns, count = self.events[0][0], self.events[-1][0], len(self.answer.ids)
        spans = {"decode_rate_full": (count - 1, last_ns - first_ns), "wall_rate": (count, last_ns - sent_ns)}
        passed = list(accumulate(tokens for _, tokens, _ in self.events))
        if count >= WINDOW:
            at = bisect_left(passed, WINDOW)
            span_ns = self.events[at][0] - first_ns
            spans |= {CONVENTIONAL: (WINDOW - 1, span_ns), LEGACY: (WINDOW, span_ns)}
            spans["decode_rate_chunked_1_100"] = (passed[at] - passed[0], span_ns)
        self.metrics = {name: Fraction(n * NS_PER_S, ns) for name, (n, ns) in spans.items() if n > 0 and ns > 0}
        self.metrics |= {"ttft": Fraction(first_ns - sent_ns), "ttft_from_connect": Fraction(first_ns - connect_ns)}
        # A stamp belongs to the last event of its read: no gap beside a shared read is a measurement.
        gaps = [later[0] - earlier[0] for earlier, later in pairwise(self.events) if not (earlier[2] or later[2])]
        self.metrics |= {f"inter_event_latency_{name}": quantile(gaps, share) for name, share in GAPS.items() if gaps}
        every = [later[0] - earlier[0] for earlier, later in pairwise(self.events)]
        if every and max(every) >= ONE_OFF_NS and max(every) > ONE_OFF_TIMES * quantile(every):
            self.metrics["one_off_gap"] = Fraction(max(every))

    def figures(self, leg: str) -> Doc:
        """What a verdict says of one row."""
        where, prompt = f"{leg} row {self.number}", self.lines["opened"][0]["prompt_id"]
        figures = [figure(name, where, value, "tokens/s or ns") for name, value in self.metrics.items()]
        figures.append(figure("coalesced_tokens", where, self.coalesced, "tokens"))
        counts = {"token_count": len(self.answer.ids), "token_ids_sha256": sha256(canonical(self.answer.ids))}
        return {"leg": leg, "row": self.number, "prompt": prompt, **counts, "figures": figures}


def _misplaced(lines: Lines) -> list[str]:
    """A stamp of the wall clock where the monotonic times beside it say that it cannot have been."""
    offset_ns, told, started = lines["opened"][0]["clock_offset_ns"], list[str](), lines["connect_started"]
    sent = [{**line, "mono_ns": line["mono_before_ns"]} for line in lines["sent"]]
    for line in (*started, *sent):
        if not -DELAY_TOLERANCE_NS <= line["realtime_ns"] - offset_ns - line["mono_ns"] <= CLOCK_TOLERANCE_NS:
            told.append(f"stamp_range: {line}")
    earliest_ns = (sent or started)[0]["mono_ns"] - CLOCK_TOLERANCE_NS
    for read in lines["read"]:
        arrived_ns = read["mono_ns"] if read["kernel_ns"] is None else read["kernel_ns"] - offset_ns
        if not earliest_ns <= arrived_ns <= read["mono_ns"] + CLOCK_TOLERANCE_NS:
            told.append(f"stamp_range: {read} not after {earliest_ns}")
        earliest_ns = read["mono_ns"] - DELAY_TOLERANCE_NS
    return told[:1]


def quantile(values: Iterable[Fraction | int], share: Fraction = Fraction(1, 2)) -> Fraction:
    """By linear interpolation between order statistics; the median, unless told otherwise."""
    ordered = [Fraction(value) for value in sorted(values)]
    below, part = divmod(share * (len(ordered) - 1), 1)
    return ordered[below] + part * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])


def headline(rows: Sequence[Row], metric: str) -> Fraction | None:
    """The median over all rows of a start; None where a row lacks it."""
    known = [row.metrics[metric] for row in rows if metric in row.metrics]
    return quantile(known) if known and len(known) == len(rows) else None


def gain_percent(candidate: Fraction, control: Fraction) -> Fraction:
    """How much faster a candidate is, in percent."""
    return (candidate / control - 1) * 100


def figure(name: str, where: str, value: Fraction | int, unit: str) -> Doc:
    """An exact value, and how it reads."""
    shown = Context(prec=12).divide(Decimal(value.numerator), Decimal(value.denominator))
    return {"name": name, "where": where, "value": str(value), "decimal": f"{shown.normalize():f}", "unit": unit}


def start_figures(leg: str, rows: Sequence[Row], metric: str) -> Doc:
    """What a verdict says of one start."""
    known = [row.metrics[metric] for row in rows if metric in row.metrics]
    waits = [row.metrics["ttft"] for row in rows if row.metrics]
    named: dict[str, Fraction | int] = {"first_row": known[0]} if metric in rows[0].metrics else {}
    if known:
        named |= {metric: quantile(known), "minimum": min(known), "maximum": max(known)}
        named |= {"mean": sum(known, Fraction(0)) / len(known), "p10": quantile(known, Fraction(1, 10))}
    named |= {"ttft_median": quantile(waits)} if waits else {}
    named |= {"tokens": sum(len(row.answer.ids) for row in rows), "coalesced_tokens": sum(r.coalesced for r in rows)}
    if rest := [row.metrics[metric] for row in rows[1:] if metric in row.metrics]:
        named["without_first_row"] = quantile(rest)
    for other in (CONVENTIONAL, LEGACY):
        if other != metric and (both := [row.metrics[other] for row in rows if other in row.metrics]):
            named[other] = quantile(both)  # both conventions side by side
    steady = [row.events for row in rows if row.metrics and "one_off_gap" not in row.metrics]
    if cycles := sum(len(events) - 1 for events in steady):
        named["cycle_ms_steady"] = Fraction(sum(events[-1][0] - events[0][0] for events in steady), cycles * 10**6)
    named["one_off_gap_rows"] = sum("one_off_gap" in row.metrics for row in rows)
    named["invalid_rows"] = sum(bool(row.faults or row.doubts) for row in rows)
    return {"leg": leg, "rows": len(rows), "figures": [figure(name, leg, value, "") for name, value in named.items()]}
