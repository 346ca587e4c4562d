"""The server's counters, under vLLM's names and in the text form of the Prometheus client."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from labctl.servers.reference.generation import Step

_SHORT_S = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_BUCKETS_S = (*_SHORT_S, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)
_REASONS = ("stop", "length", "abort", "error")

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Family:
    name: str
    kind: str
    text: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        for name, labels, value in self.samples:
            yield f"{name}{_label_text(labels)} {float(value)!r}"


class Counters:
    """Everything that the server counts; safe for several threads."""

    def __init__(self, model_name: str, draft_tokens: int, configuration: Labels) -> None:
        self._lock = threading.Lock()
        self._own: Labels = (("engine", "0"), ("model_name", model_name))
        self._configuration = configuration
        self._created = time.time()
        self._totals = dict.fromkeys(_PLAIN, 0)
        self._reasons = dict.fromkeys(_REASONS, 0)
        self._positions = [0] * draft_tokens
        self._buckets = [0] * (len(_BUCKETS_S) + 1)
        self._decode_s = 0.0
        self._gauges = {"running": 0, "waiting": 0}

    def add(self, name: str, amount: int) -> None:
        """Add to one of the plain counters."""
        with self._lock:
            self._totals[name] += amount

    def move(self, gauge: str, amount: int) -> None:
        """Change how many requests are `running` or `waiting`."""
        with self._lock:
            self._gauges[gauge] += amount

    def count_step(self, step: Step) -> None:
        """Count what one run of the decoder gave."""
        with self._lock:
            self._totals["generation_tokens"] += len(step.tokens)
            if step.drafted:
                self._totals["spec_decode_num_drafts"] += 1
                self._totals["spec_decode_num_draft_tokens"] += step.drafted
                self._totals["spec_decode_num_accepted_tokens"] += step.accepted
                for position in range(step.accepted):
                    self._positions[position] += 1

    def count_end(self, reason: str, decode_s: float) -> None:
        """Count a request that ended, and the time from its first token to its last."""
        with self._lock:
            self._reasons[reason] += 1
            self._buckets[bisect_left(_BUCKETS_S, decode_s)] += 1
            self._decode_s += decode_s

    def render(self, process_start_s: float) -> str:
        """The whole text of `/metrics`."""
        with self._lock:
            families = list(self._families())
        start = _Family("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
        start.samples.append((start.name, (), process_start_s))
        return "\n".join(line for family in (start, *families) for line in family.lines()) + "\n"

    def _families(self) -> Iterator[_Family]:
        for state, count in self._gauges.items():
            name = f"vllm:num_requests_{state}"
            yield _Family(name, "gauge", f"Number of requests {state}.", [(name, self._own, count)])
        for name, text in _PLAIN.items():
            if not name.startswith("spec_decode") or self._positions:
                yield from self._counter(f"vllm:{name}", text, [((), self._totals[name])])
        if self._positions:
            by_position = [((("position", str(place)),), count) for place, count in enumerate(self._positions)]
            name = "vllm:spec_decode_num_accepted_tokens_per_pos"
            yield from self._counter(name, "Accepted tokens per draft position.", by_position)
        by_reason = [((("finished_reason", reason),), count) for reason, count in self._reasons.items()]
        yield from self._counter("vllm:request_success", "Count of successfully processed requests.", by_reason)
        yield from self._decode_time()
        name = "vllm:cache_config_info"
        labels = (*self._configuration, ("engine", "0"))
        yield _Family(name, "gauge", "Information of the cache configuration.", [(name, labels, 1)])

    def _counter(self, name: str, text: str, parts: Sequence[tuple[Labels, int]]) -> Iterator[_Family]:
        totals = [(f"{name}_total", self._own + labels, float(count)) for labels, count in parts]
        yield _Family(f"{name}_total", "counter", text, totals)
        births = [(f"{name}_created", self._own + labels, self._created) for labels, _ in parts]
        yield _Family(f"{name}_created", "gauge", text, births)

    def _decode_time(self) -> Iterator[_Family]:
        name = "vllm:request_decode_time_seconds"
        family = _Family(name, "histogram", "Histogram of time spent in DECODE phase for request.")
        seen = 0
        for bound, count in zip((*map(str, _BUCKETS_S), "+Inf"), self._buckets, strict=True):
            seen += count
            family.samples.append((f"{name}_bucket", (*self._own, ("le", bound)), seen))
        family.samples.append((f"{name}_count", self._own, seen))
        family.samples.append((f"{name}_sum", self._own, self._decode_s))
        yield family
        yield _Family(f"{name}_created", "gauge", family.text, [(f"{name}_created", self._own, self._created)])


_PLAIN = {
    "prompt_tokens": "Number of prefill tokens processed.",
    "generation_tokens": "Number of generation tokens processed.",
    "num_preemptions": "Cumulative number of preemption from the engine.",
    "prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
    "spec_decode_num_drafts": "Number of spec decoding drafts.",
    "spec_decode_num_draft_tokens": "Number of draft tokens.",
    "spec_decode_num_accepted_tokens": "Number of accepted tokens.",
}


def _label_text(labels: Labels) -> str:
    if not labels:
        return ""
    quoted = (f'{name}="{_escaped(value)}"' for name, value in sorted(labels))
    return "{" + ",".join(quoted) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
