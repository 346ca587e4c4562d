import os
import stat
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.durable import (
    AppendLog,
    complete_once,
    make_folder,
    make_folders,
    read_regular,
    replace_regenerable,
    sync_file,
    write_all,
    write_once,
)
from labctl.errors import BrokenEvidence, LabctlError, Refused


def code(error: pytest.ExceptionInfo[LabctlError]) -> Code:
    return error.value.codes[0]


def test_a_file_is_written_once(tmp_path: Path) -> None:
    write_once(tmp_path / "a", b"first")
    with pytest.raises(Refused) as caught:
        write_once(tmp_path / "a", b"second")
    assert code(caught) is Code.EXISTS
    assert (tmp_path / "a").read_bytes() == b"first"


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(Refused):
        write_once(tmp_path / "link", b"x")
    assert not (tmp_path / "target").exists()


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        make_folder(tmp_path / "folder")
        write_once(tmp_path / "folder" / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "folder" / "file").stat().st_mode) == 0o600


def test_a_folder_is_made_once_and_its_parents_when_they_lack(tmp_path: Path) -> None:
    make_folders(tmp_path / "a" / "b")
    make_folders(tmp_path / "a" / "b")
    with pytest.raises(Refused) as caught:
        make_folder(tmp_path / "a")
    assert code(caught) is Code.EXISTS


def test_a_file_in_no_folder_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BrokenEvidence) as caught:
        write_once(tmp_path / "absent" / "file", b"")
    assert code(caught) is Code.WRITE_FAILED


@pytest.mark.parametrize("before", [None, b"", b"who", b"whole"])
def test_a_file_that_was_cut_short_is_finished(tmp_path: Path, before: bytes | None) -> None:
    if before is not None:
        (tmp_path / "file").write_bytes(before)
    complete_once(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


@pytest.mark.parametrize("before", [b"x", b"wholesome", b"whale"])
def test_a_file_of_other_bytes_is_not_finished(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "file").write_bytes(before)
    with pytest.raises(BrokenEvidence):
        complete_once(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == before


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(BrokenEvidence) as caught:
        AppendLog.reopen(tmp_path / "full")
    assert code(caught) is Code.WRITE_FAILED
    with AppendLog.reopen(Path("/dev/full")) as log, pytest.raises(BrokenEvidence) as caught:
        log.append(b"line\n")
    assert code(caught) is Code.WRITE_FAILED


def test_a_log_only_grows(tmp_path: Path) -> None:
    with AppendLog.create(tmp_path / "log") as log:
        log.append(b"one\n")
    with AppendLog.reopen(tmp_path / "log") as log:
        log.append(b"two\n")
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    with pytest.raises(Refused):
        AppendLog.create(tmp_path / "log")


def test_short_writes_are_continued() -> None:
    read_end, write_end = os.pipe()
    data = os.urandom(1000)
    write_all(write_end, data)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        assert stream.read() == data


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "folder").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("fifo", "link", "folder"):
        with pytest.raises(BrokenEvidence) as caught:
            read_regular(tmp_path / name, limit_bytes=10)
        assert code(caught) is Code.FORBIDDEN_FILE
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", limit_bytes=5) == b"12345"
    with pytest.raises(BrokenEvidence) as caught:
        read_regular(tmp_path / "file", limit_bytes=4)
    assert code(caught) is Code.TOO_LARGE
    with pytest.raises(BrokenEvidence) as caught:
        read_regular(tmp_path / "absent", limit_bytes=4)
    assert code(caught) is Code.MISSING_FILE


def test_bytes_that_cannot_be_put_on_disk_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    sync_file(tmp_path / "file")
    with pytest.raises(BrokenEvidence) as caught:
        sync_file(tmp_path / "absent")
    assert code(caught) is Code.WRITE_FAILED


def test_what_can_be_made_again_is_replaced(tmp_path: Path) -> None:
    replace_regenerable(tmp_path / "schema", b"one")
    replace_regenerable(tmp_path / "schema", b"two")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"two"]
