"""What a start could hold and what it held: the cache's tokens as its server says, and the memory of its processes."""

import re
from fractions import Fraction

from labctl.analyze.evidence import LegEvidence
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import MalformedRecord
from labctl.frozen import strict_json

BLOCKS, BLOCK_TOKENS, RESIDENT = "num_gpu_blocks", "block_size", "server_rss_bytes"


def kv_capacity_tokens(engine: EngineVocabulary, leg: LegEvidence) -> int | None:
    """Tokens that the cache of keys and values holds; None where neither the metric nor the log says it."""
    metric = _of_metric(leg)
    return metric if metric is not None else _of_log(engine, leg.log)


def resident_bytes(leg: LegEvidence) -> int | None:
    """The largest sample of the processes' resident memory; None where there is none, or one cannot be read."""
    if leg.telemetry is None:
        return None
    try:
        lines = [strict_json(line, "telemetry") for line in leg.telemetry.splitlines()]
    except MalformedRecord:
        return None
    sizes = [line.get(RESIDENT) if isinstance(line, dict) else None for line in lines]
    known = [size for size in sizes if type(size) is int and size >= 0]
    return max(known) if known and len(known) == len(sizes) else None


def _of_metric(leg: LegEvidence) -> int | None:
    samples = {} if leg.after is None else leg.after.values.get("cache_config", {})
    total = Fraction(0)
    for labels, engines in samples.items():
        said = dict(labels)
        numbers = [said.get(name, "") for name in (BLOCKS, BLOCK_TOKENS)]
        if not all(re.fullmatch("[0-9]{1,18}", number) for number in numbers):
            return None
        total += engines * int(numbers[0]) * int(numbers[1])
    return int(total) if total else None


def _of_log(engine: EngineVocabulary, log: bytes | None) -> int | None:
    if engine.kv_capacity_pattern is None or log is None:
        return None
    found = [match["tokens"] for match in re.finditer(engine.kv_capacity_pattern.encode(), log)]
    counts = [digits for text in found if re.fullmatch(rb"[0-9]{1,18}", digits := text.replace(b",", b""))]
    # Every rank prints its own; what all can hold is what the smallest can.
    return min((int(digits) for digits in counts), default=None)
