"""One fault of each mechanism; `make faults` lets every n-th call fail until everything runs through."""

from pathlib import Path

import pytest

from tests.faults.crash.injection import HAS_STRACE, Injection, inject_into_marker, inject_into_seal

pytestmark = pytest.mark.skipif(not HAS_STRACE, reason="needs strace")


@pytest.mark.parametrize(
    ("injection", "found"),
    [
        (Injection("write", "error=ENOSPC", 2), "spent, and refused a second time"),
        (Injection("close", "error=EIO", 1), "spent, and refused a second time"),
        (Injection("fchmod", "signal=KILL", 1), "spent, and refused a second time"),
    ],
)
def test_a_fault_while_consuming_leaves_a_legal_state(injection: Injection, found: str, tmp_path: Path) -> None:
    assert inject_into_marker(tmp_path, injection) == found


@pytest.mark.parametrize(
    ("injection", "found"),
    [
        (Injection("fsync", "error=EIO", 1), "unsealed, and then sealed as aborted"),
        (Injection("write", "error=ENOSPC", 3), "unsealed, and then sealed as aborted"),
        (Injection("openat", "signal=KILL", 20), "unsealed, and then sealed as aborted"),
    ],
)
def test_a_fault_while_sealing_leaves_a_legal_state(injection: Injection, found: str, tmp_path: Path) -> None:
    assert inject_into_seal(tmp_path, injection) == found


def test_a_call_that_is_never_made_so_often_fails_nothing(tmp_path: Path) -> None:
    assert inject_into_marker(tmp_path, Injection("write", "error=EIO", 99)) is None
