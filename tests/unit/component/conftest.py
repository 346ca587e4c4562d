"""What tests of workers share."""

from collections.abc import Iterator

import pytest

from tests.fakes.component_worker import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """Forks workers from one process that has imported torch."""
    one = Zygote()
    yield one
    one.close()
