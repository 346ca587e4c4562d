"""Whatever the system does not grant, a write that did not happen is told, and nothing of another kind is raised."""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.durable import AppendLog, make_folder, write_once
from labctl.errors import BrokenEvidence


@contextlib.contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    before, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (before, hard))


def code_of(caught: pytest.ExceptionInfo[BrokenEvidence]) -> Code:
    (code,) = caught.value.codes
    return code


def test_a_limit_of_the_system_ends_the_write(tmp_path: Path) -> None:
    with limited(resource.RLIMIT_FSIZE, 3), pytest.raises(BrokenEvidence) as caught:
        write_once(tmp_path / "file", b"12345")
    assert (code_of(caught), (tmp_path / "file").read_bytes()) == (Code.WRITE_FAILED, b"123")
    with AppendLog.create(tmp_path / "log") as log:
        with limited(resource.RLIMIT_FSIZE, 0), pytest.raises(BrokenEvidence) as caught:
            log.append(b"line\n")
        assert code_of(caught) is Code.WRITE_FAILED
    lowest_free = os.dup(0)
    os.close(lowest_free)
    with limited(resource.RLIMIT_NOFILE, lowest_free), pytest.raises(BrokenEvidence) as caught:
        write_once(tmp_path / "one-too-many", b"")
    assert code_of(caught) is Code.WRITE_FAILED
    assert not (tmp_path / "one-too-many").exists()


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_file_system_without_room_for_a_name_or_mounted_for_reading_ends_the_write(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    with mounted(place, "size=64k,nr_inodes=2"):
        write_once(place / "first", b"")
        with pytest.raises(BrokenEvidence) as caught:
            write_once(place / "second", b"")
        assert code_of(caught) is Code.WRITE_FAILED
        with pytest.raises(BrokenEvidence) as caught:
            make_folder(place / "folder")
        assert code_of(caught) is Code.WRITE_FAILED
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        (message,) = refusals(place / "third")
        assert "Read-only file system" in message


def refusals(path: Path) -> list[str]:
    with pytest.raises(BrokenEvidence) as caught:
        write_once(path, b"")
    assert code_of(caught) is Code.WRITE_FAILED
    return [str(problem) for problem in caught.value.problems]
