from pathlib import Path

from labctl.codes import Code
from tests.faults.crash.races import race


def test_of_sixteen_controllers_exactly_one_wins(tmp_path: Path) -> None:
    assert race(tmp_path / "authorization", 16) == {"won": 1, Code.CONSUMED.value: 15}
