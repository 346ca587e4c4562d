"""What the tensors of a probe must hold, computed from what was registered and the leg's nonce alone."""

from collections.abc import Iterator
from hashlib import sha256
from struct import pack

from labctl.prereg.probe_model import Collective

PERIOD = 251
WORD_DIGITS = 16
LETTERS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}
PERIODS_AT_ONCE = 1024


def shift_of(nonce: str) -> int:
    """Where the pattern starts: known to nobody before the packet is consumed."""
    return int(nonce[:WORD_DIGITS], 16) % PERIOD


def brought_sha256(collective: Collective, rank: int, nonce: str) -> str:
    """The digest of what one rank brings: element i is `(rank + 1) * (1 + (i + shift) % 251)`."""
    return _digest(collective, rank + 1, shift_of(nonce))


def reduced_sha256(collective: Collective, ranks: int, nonce: str) -> str:
    """The digest of the sum of what all ranks bring."""
    return _digest(collective, sum(range(1, ranks + 1)), shift_of(nonce))


def _digest(collective: Collective, factor: int, shift: int) -> str:
    digest = sha256()
    for part in _parts(collective, factor, shift):
        digest.update(part)
    return digest.hexdigest()


def _parts(collective: Collective, factor: int, shift: int) -> Iterator[bytes]:
    """The little-endian elements, some whole periods at a time."""
    letter = LETTERS[collective.dtype]
    period = [factor * (1 + (place + shift) % PERIOD) for place in range(PERIOD)]
    whole = pack(f"<{PERIOD}{letter}", *period) * PERIODS_AT_ONCE
    rounds, rest = divmod(collective.elements, PERIOD * PERIODS_AT_ONCE)
    yield from (whole for _ in range(rounds))
    yield whole[: rest * (len(whole) // (PERIOD * PERIODS_AT_ONCE))]
