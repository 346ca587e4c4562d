import random

import numpy as np
import pytest

from labctl.servers.reference import decoder as module
from labctl.servers.reference.decoder import Decoder, largest_partial_sum, largest_row_sum, new_cache
from labctl.servers.reference.tokens import VOCABULARY_SIZE, encode_text
from labctl.servers.reference.weights import WIDTH, Array

TEXT = "Once upon a time there was a small house near the river, and the small house near the river was empty."


def random_rows(count: int, width: int, seed: int) -> Array:
    source = np.random.default_rng(seed)
    return source.integers(-module.LIMIT, module.LIMIT + 1, (count, width)).astype(np.float64)


def stepwise(decoder: Decoder, tokens: list[int]) -> list[int]:
    cache = new_cache(len(tokens))
    return [decoder.advance([token], cache)[0] for token in tokens]


def test_no_partial_sum_can_reach_the_end_of_the_exact_integers(decoder: Decoder) -> None:
    assert largest_partial_sum(decoder.weights) < 2**53


def test_two_rows_that_share_a_number_cannot_touch(decoder: Decoder) -> None:
    assert largest_row_sum(decoder.weights) < module._LANE / 2


def test_the_bound_is_the_worst_that_activations_can_do(decoder: Decoder) -> None:
    worst = 0.0
    for layer in decoder.weights.layers:
        for matrix in (layer.query_key_value, layer.output, layer.up, layer.down, decoder.weights.unembedding):
            signs = np.sign(matrix) * module.LIMIT
            worst = max(worst, float((signs * matrix).sum(axis=0).max()))
    assert worst == largest_row_sum(decoder.weights)


def test_the_bound_sees_a_weight_that_is_too_large(decoder: Decoder) -> None:
    weights = decoder.weights
    spoiled = weights.unembedding.copy()
    spoiled[0, 0] = 2.0**30
    bad = type(weights)(weights.tokens, weights.places, weights.layers, spoiled, weights.bias)
    assert largest_partial_sum(bad) > 2**53


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9])
def test_a_product_is_that_of_whole_numbers_whatever_its_rows(decoder: Decoder, count: int) -> None:
    matrix = decoder.weights.layers[0].up
    rows = random_rows(count, WIDTH, count)
    exact = rows.astype(np.int64).astype(object) @ matrix[:, ::16].astype(np.int64).astype(object)
    assert (module._product(rows, matrix)[:, ::16] == exact.astype(np.float64)).all()


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_a_product_does_not_depend_on_the_order_of_its_sums(decoder: Decoder, count: int) -> None:
    matrix = decoder.weights.layers[1].down
    rows = random_rows(count, len(matrix), count)
    order = np.random.default_rng(7).permutation(len(matrix))
    assert (module._product(rows, matrix) == module._product(rows[:, order], matrix[order])).all()


@pytest.mark.parametrize("seed", range(6))
def test_any_split_into_batches_gives_the_tokens_of_single_steps(decoder: Decoder, seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 (a test's choice, no secret)
    tokens = encode_text(TEXT) + [source.randrange(VOCABULARY_SIZE) for _ in range(40)]
    cache = new_cache(len(tokens))
    batched: list[int] = []
    while len(batched) < len(tokens):
        batched += decoder.advance(tokens[len(batched) : len(batched) + source.randint(1, 12)], cache)
    assert batched == stepwise(decoder, tokens)


def test_a_long_prompt_is_read_in_chunks_with_the_same_result(decoder: Decoder) -> None:
    tokens = [3 + index * 7 % 250 for index in range(module._CHUNK + 30)]
    assert decoder.advance(tokens, new_cache(len(tokens))) == stepwise(decoder, tokens)


def test_rejected_tokens_leave_no_trace(decoder: Decoder) -> None:
    tokens = encode_text(TEXT)
    cache = new_cache(len(tokens) + 4)
    decoder.advance(tokens[:20], cache)
    decoder.advance([5, 6, 7, 8], cache)
    cache.length = 20
    assert decoder.advance(tokens[20:], cache) == stepwise(decoder, tokens)[20:]


def test_an_early_token_reaches_the_last_place_and_never_an_earlier_one(decoder: Decoder) -> None:
    tokens = encode_text(TEXT)
    caches = [new_cache(len(tokens)), new_cache(len(tokens))]
    decoder.advance(tokens, caches[0])
    decoder.advance([*tokens[:3], 300, *tokens[4:]], caches[1])
    left, right = (cache.keys[-1] for cache in caches)
    assert (left[:, :3] == right[:, :3]).all()
    assert (left[:, -1] != right[:, -1]).any()
