"""What a start could hold and what it held: the cache's tokens as its server says, and the memory of its processes."""

import re
from collections.abc import Mapping
from fractions import Fraction

from labctl.analyze.evidence import LegEvidence
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import MalformedRecord
from labctl.frozen import strict_json

STATED, BLOCKS, BLOCK_TOKENS, RESIDENT = "kv_cache_size_tokens", "num_gpu_blocks", "block_size", "server_rss_bytes"


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
        tokens = config_tokens(dict(labels))
        if tokens is None:
            return None
        total += engines * tokens
    return int(total) if total else None


def config_tokens(said: Mapping[str, str]) -> int | None:
    """Tokens by the labels of one engine: as stated, else blocks x size, which layers of several kinds may share."""
    numbers = [said.get(name, "") for name in (STATED, BLOCKS, BLOCK_TOKENS)]
    stated, blocks, size = (int(text) if re.fullmatch("[0-9]{1,18}", text) else None for text in numbers)
    if stated is not None:
        return stated
    return None if blocks is None or size is None else blocks * size


def _of_log(engine: EngineVocabulary, log: bytes | None) -> int | None:
    if engine.kv_capacity_pattern is None or log is None:
        return None
    found = [match["tokens"] for match in re.finditer(engine.kv_capacity_pattern.encode(), log)]
    counts = [digits for text in found if re.fullmatch(rb"[0-9]{1,18}", digits := text.replace(b",", b""))]
    # Every rank prints its own; what all can hold is what the smallest can.
    return min((int(digits) for digits in counts), default=None)
