import hashlib

import numpy as np

from labctl.servers.reference.decoder import Decoder
from labctl.servers.reference.weights import Array, Weights, make_weights

EXPECTED_SHA256 = "a8ce48f5a327a645c2e4af9752f10f7ef3e4b4870fc1dcd6762bfc5fe62fb375"


def arrays(weights: Weights) -> list[Array]:
    found = [weights.tokens, weights.places, weights.unembedding, weights.bias]
    for layer in weights.layers:
        found += [layer.query_key_value, layer.output, layer.up, layer.down, layer.sharpness]
    return found


def digest(weights: Weights) -> str:
    data = b"".join(array.astype("<i8").tobytes() for array in arrays(weights))
    return hashlib.sha256(data).hexdigest()


def test_every_weight_is_a_whole_number(decoder: Decoder) -> None:
    assert all((array == np.rint(array)).all() for array in arrays(decoder.weights))


def test_the_weights_are_the_same_on_every_machine(decoder: Decoder) -> None:
    assert digest(decoder.weights) == EXPECTED_SHA256


def test_another_seed_gives_other_weights(decoder: Decoder) -> None:
    assert digest(make_weights(1)) != digest(decoder.weights)
