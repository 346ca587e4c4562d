"""The prefix cache: whole blocks of earlier sequences, reused when a prompt begins with the same tokens."""

from collections import deque
from collections.abc import Sequence

from labctl.servers.reference.decoder import Cache, new_cache

BLOCK_TOKENS = 16
_KEPT_SEQUENCES = 16


class PrefixCache:
    """The latest sequences with their caches."""

    def __init__(self) -> None:
        self._kept: deque[tuple[tuple[int, ...], Cache]] = deque(maxlen=_KEPT_SEQUENCES)

    def start(self, prompt: Sequence[int], capacity: int) -> Cache:
        """A cache that already holds the longest known beginning of `prompt`, its last token never among it."""
        cache = new_cache(capacity)
        for tokens, known in self._kept:
            shared = _shared_blocks(prompt[:-1], tokens[: known.length])
            if shared > cache.length:
                cache.keys[:, :, :shared] = known.keys[:, :, :shared]
                cache.values[:, :, :shared] = known.values[:, :, :shared]
                cache.length = shared
        return cache

    def keep(self, tokens: Sequence[int], cache: Cache) -> None:
        """Remember a sequence that ended."""
        self._kept.append((tuple(tokens), cache))


def _shared_blocks(left: Sequence[int], right: Sequence[int]) -> int:
    same = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        same += 1
    return same - same % BLOCK_TOKENS
