from pathlib import Path

import pytest

from tests.fakes.leg import LegPlace


@pytest.fixture
def place(tmp_path: Path) -> LegPlace:
    return LegPlace.new(tmp_path)
