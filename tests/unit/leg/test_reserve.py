import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import PreflightFailed
from labctl.leg.reserve import RESERVE_BYTES, Reserve
from labctl.records.leg import StopCause
from tests.fakes.leg import LegPlace, RunningLeg

DISK_BYTES = 10 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def free_bytes(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize


def test_the_room_is_taken_without_a_name_and_given_back(disk: Path) -> None:
    before = free_bytes(disk)
    reserve = Reserve.take(disk)
    assert before - free_bytes(disk) >= RESERVE_BYTES
    assert list(disk.iterdir()) == []
    reserve.release()
    reserve.release()
    assert free_bytes(disk) == before


def test_a_disk_without_that_room_starts_nothing(disk: Path) -> None:
    (disk / "filler").write_bytes(b"x" * (DISK_BYTES - RESERVE_BYTES + 1))
    with pytest.raises(PreflightFailed) as refused:
        Reserve.take(disk)
    assert refused.value.codes == (Code.DISK_FULL,)


def test_a_disk_that_is_full_in_the_middle_of_a_leg_still_takes_the_record_of_it(disk: Path) -> None:
    (disk / "place").mkdir()
    place = LegPlace.new(disk / "place")
    flood = place.order("--log-bytes", str(4 * DISK_BYTES), limits={"log_limit_bytes": 8 * DISK_BYTES})
    with RunningLeg.start(place, flood) as leg:
        assert leg.wait() == 4
    assert place.postflight().log_bytes < DISK_BYTES  # so the disk was full, and not the log at its limit
    assert place.exit().cause is not StopCause.COMPLETED
    assert any(problem.endswith("[WRITE_FAILED]") for problem in place.exit().problems)
    place.assert_closed()
    place.assert_nothing_left()
    assert free_bytes(disk) > RESERVE_BYTES // 2
