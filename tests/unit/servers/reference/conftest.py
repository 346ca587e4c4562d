import pytest

from labctl.servers.reference.decoder import Decoder
from labctl.servers.reference.weights import make_weights


@pytest.fixture(scope="session")
def decoder() -> Decoder:
    return Decoder(make_weights())
