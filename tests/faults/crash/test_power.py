"""No loss of power lets a leg have started without a marker, or leaves a seal without the files that it seals."""

from pathlib import Path

import pytest

from tests.faults.crash.injection import HAS_STRACE
from tests.faults.crash.power import lose_power_while_consuming, lose_power_while_sealing
from tests.faults.crash.states import Disk, Operation


def test_every_state_of_consuming_is_legal(tmp_path: Path) -> None:
    if not HAS_STRACE:
        pytest.skip("needs strace")
    found = lose_power_while_consuming(tmp_path)
    assert set(found) == {"spent: a second consumption is refused", "not spent: nothing was started"}


def test_every_state_of_sealing_is_legal(tmp_path: Path) -> None:
    if not HAS_STRACE:
        pytest.skip("needs strace")
    found = lose_power_while_sealing(tmp_path)
    assert set(found) == {"sealed: every byte is there", "no seal yet: unusable"}


def test_what_was_not_synced_may_be_lost_in_every_combination() -> None:
    folder, file = Path("/run/data"), Path("/run/data/file")
    disk = Disk()
    for operation in (Operation("make", folder), Operation("make", file), Operation("grow", file, 4)):
        disk.apply(operation)
    found = [sorted((path.name, size) for path, size in state.items()) for state in disk.states()]
    whole = [[("data", 0), ("file", size)] for size in (0, 2, 4)]
    assert all(state in found for state in [[], [("data", 0)], *whole])
    for operation in (Operation("sync", file), Operation("sync", folder), Operation("sync", folder.parent)):
        disk.apply(operation)
    assert list(disk.states()) == [{folder: 0, file: 4}]


def test_a_file_may_be_found_without_its_bytes_until_it_is_synced() -> None:
    file = Path("/run/seal.json")
    disk = Disk()
    for operation in (Operation("make", file), Operation("grow", file, 4), Operation("sync", file.parent)):
        disk.apply(operation)
    assert [state[file] for state in disk.states()] == [0, 2, 4]
