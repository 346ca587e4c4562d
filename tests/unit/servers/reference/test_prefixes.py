from labctl.servers.reference.decoder import Decoder, new_cache
from labctl.servers.reference.prefixes import BLOCK_TOKENS, PrefixCache

PROMPT = list(range(2 * BLOCK_TOKENS + 5))


def kept(decoder: Decoder, tokens: list[int]) -> PrefixCache:
    prefixes, cache = PrefixCache(), new_cache(len(tokens))
    decoder.advance(tokens, cache)
    prefixes.keep(tokens, cache)
    return prefixes


def test_whole_blocks_of_a_known_beginning_are_reused(decoder: Decoder) -> None:
    prefixes = kept(decoder, PROMPT)
    cache = prefixes.start([*PROMPT, 7, 8], 64)
    assert cache.length == 2 * BLOCK_TOKENS
    fresh = new_cache(64)
    assert decoder.advance([*PROMPT, 7, 8][cache.length :], cache)[-1] == decoder.advance([*PROMPT, 7, 8], fresh)[-1]


def test_the_last_token_is_always_computed(decoder: Decoder) -> None:
    exact_blocks = PROMPT[: 2 * BLOCK_TOKENS]
    assert kept(decoder, exact_blocks).start(exact_blocks, 64).length == BLOCK_TOKENS


def test_another_beginning_reuses_nothing(decoder: Decoder) -> None:
    assert kept(decoder, PROMPT).start([99, *PROMPT[1:]], 64).length == 0


def test_an_old_sequence_is_not_changed_by_its_reuse(decoder: Decoder) -> None:
    prefixes = kept(decoder, PROMPT)
    decoder.advance([200] * 8, prefixes.start(PROMPT, 64))
    again = prefixes.start(PROMPT, 64)
    fresh = new_cache(64)
    decoder.advance(PROMPT[: again.length], fresh)
    assert (again.keys == fresh.keys).all()
