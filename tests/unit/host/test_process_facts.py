import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.host.process_facts import (
    Mapping,
    SharedSegment,
    executable_lines,
    mapped_files,
    open_files,
    resident_bytes,
    see_process,
    shared_segments,
    still_there,
)
from labctl.host.processes import ProcessIdentity, identity_of_unreaped, own_identity

ENDED = ProcessIdentity(2**22 + 1, 1)
SECRET = {"PATH": "/bin", "API_KEY": "do-not-write-this", "ODD": "a=b=c"}


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    argv = [sys.executable, "-c", "print('up', flush=True); input()", "\N{SNOWMAN}", ""]
    with subprocess.Popen(argv, env=SECRET, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.communicate(b"\n")


def test_values_are_seen_only_where_the_name_is_allowed(child: "subprocess.Popen[bytes]") -> None:
    seen = see_process(identity_of_unreaped(child.pid), {"PATH", "ODD", "NOT_THERE"})
    assert seen is not None
    assert seen.environment == {"PATH": "/bin", "ODD": "a=b=c"}
    assert "API_KEY" in seen.environment_other
    assert b"do-not-write-this" not in seen.canonical()


def test_arguments_are_those_that_the_process_got(child: "subprocess.Popen[bytes]") -> None:
    seen = see_process(identity_of_unreaped(child.pid), ())
    assert seen is not None
    assert seen.argv == tuple(child.args)  # type: ignore[arg-type] # a list of text
    assert Path(seen.executable).samefile(sys.executable)
    assert seen.parent_pid == os.getpid()


def test_a_process_that_ended_or_whose_id_is_in_use_again_is_not_seen() -> None:
    own = own_identity()
    assert see_process(ENDED, ()) is None
    assert see_process(ProcessIdentity(own.pid, own.start_ticks + 1), ()) is None
    assert not mapped_files(ENDED)
    assert not open_files(ENDED)
    assert resident_bytes([ENDED]) == 0


def test_bytes_that_are_not_text_stay_writable() -> None:
    argv = ["/bin/sleep", "60"]
    with subprocess.Popen(argv, env={b"NAME": b"\xff\xfe"}) as process:
        try:
            while (seen := see_process(identity_of_unreaped(process.pid), {"NAME"})) is None or not seen.environment:
                pass
            assert seen.environment == {"NAME": "\\xff\\xfe"}
            assert seen.canonical()
        finally:
            process.kill()


def test_mapped_programs_are_listed_once_sorted_and_data_is_not() -> None:
    mappings = mapped_files(own_identity())
    lines = executable_lines(mappings).decode().splitlines()
    paths = [line.split("\t")[0] for line in lines]
    assert os.path.realpath(sys.executable) in paths
    assert any("libc" in path for path in paths)
    assert lines == sorted(set(lines))
    data = Mapping("/a/data/file", "00:01", 7, is_executable=False)
    assert executable_lines([data]) == b""
    assert executable_lines([data._replace(is_executable=True)]) == b"/a/data/file\t00:01 7\n"


def test_only_the_segment_that_was_seen_counts_as_left() -> None:
    place = Path(f"/dev/shm/labctl-unit-{os.getpid()}")
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(descriptor, 4096)
        with mmap.mmap(descriptor, 4096):
            os.close(descriptor)
            seen = shared_segments([own_identity()])
            assert SharedSegment(str(place), place.stat().st_ino) in seen
            assert str(place) in still_there(seen)
        assert still_there([SharedSegment(str(place), place.stat().st_ino + 1)]) == ()
    finally:
        place.unlink()
    assert str(place) not in still_there(seen)


def test_resident_memory_is_about_what_python_needs() -> None:
    assert 5 << 20 < resident_bytes([own_identity()]) < 4 << 30
