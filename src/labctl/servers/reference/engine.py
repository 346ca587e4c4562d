"""The engine: one decoder, one sequence at a time, counted as it runs."""

import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from labctl.servers.reference.counters import Counters, Labels
from labctl.servers.reference.decoder import Cache, Decoder, new_cache
from labctl.servers.reference.generation import Step, generate
from labctl.servers.reference.options import Options
from labctl.servers.reference.prefixes import BLOCK_TOKENS, PrefixCache
from labctl.servers.reference.requests import Asked


@dataclass(slots=True)
class Work:
    """What is known of a request while it runs."""

    asked: Asked
    cached_tokens: int = 0
    generated: int = 0
    first_token_ns: int = 0
    last_token_ns: int = 0
    ended_as: str = "abort"


class Engine:
    """Runs requests one after another."""

    def __init__(self, decoder: Decoder, options: Options) -> None:
        self._decoder = decoder
        self._lookup = options.speculation
        self._prefixes = PrefixCache() if options.prefix_caching == "on" else None
        self._turn = threading.Lock()
        self.counters = Counters(
            options.served_model_name,
            0 if options.speculation is None else options.speculation.draft_tokens,
            _configuration(options),
        )

    def run(self, work: Work) -> Generator[Step, None, None]:
        """Wait for a turn, then generate; a caller that stops early leaves the request counted as aborted."""
        self.counters.move("waiting", 1)
        with self._turn:
            self.counters.move("waiting", -1)
            self.counters.move("running", 1)
            try:
                yield from self._generate(work)
            finally:
                self.counters.move("running", -1)
                self.counters.count_end(work.ended_as, (work.last_token_ns - work.first_token_ns) / 1e9)

    def _generate(self, work: Work) -> Iterator[Step]:
        prompt, limits = work.asked.prompt, work.asked.limits
        cache = self._cache(work, len(prompt) + limits.max_tokens)
        self.counters.add("prompt_tokens", len(prompt))
        said: list[int] = list(prompt)
        for step in generate(self._decoder, prompt, cache, limits, self._lookup):
            self._record(work, step)
            said += step.tokens
            yield step
        if self._prefixes is not None:
            self._prefixes.keep(said, cache)

    def _cache(self, work: Work, capacity: int) -> Cache:
        if self._prefixes is None:
            return new_cache(capacity)
        cache = self._prefixes.start(work.asked.prompt, capacity)
        work.cached_tokens = cache.length
        self.counters.add("prefix_cache_queries", len(work.asked.prompt))
        self.counters.add("prefix_cache_hits", cache.length)
        return cache

    def _record(self, work: Work, step: Step) -> None:
        work.last_token_ns = time.monotonic_ns()
        work.first_token_ns = work.first_token_ns or work.last_token_ns
        work.generated += len(step.tokens)
        work.ended_as = step.finish or "abort"
        self.counters.count_step(step)


def _configuration(options: Options) -> Labels:
    blocks = -(-options.max_model_len // BLOCK_TOKENS)
    return (
        ("block_size", str(BLOCK_TOKENS)),
        ("cache_dtype", "float64"),
        ("enable_prefix_caching", str(options.prefix_caching == "on")),
        ("num_gpu_blocks", str(blocks)),
    )
