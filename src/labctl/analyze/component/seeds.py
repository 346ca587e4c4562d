"""The seed of each row, derived from what was registered: fresh for every card, arm, case and repeat."""

from labctl.digest import sha256_hex

SEED_BITS = 63
WORD_DIGITS = 16


def derived_seed(registered: int, card_index: int, place: tuple[str, str, int]) -> int:
    """The first 63 bits below the top one of SHA-256 of `SEED/CARD/ARM/CASE/REPEAT`.

    Args:
        registered: the campaign's seed.
        card_index: the card's place, from 0.
        place: arm, case and repeat (from 1).
    """
    text = "/".join(map(str, (registered, card_index, *place)))
    return int(sha256_hex(text.encode())[:WORD_DIGITS], 16) & ((1 << SEED_BITS) - 1)
