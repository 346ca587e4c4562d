import hashlib
import os
import threading
from pathlib import Path

import pytest

from labctl.errors import Refused
from labctl.servers.log import ServerLog, printable


class Printer:
    """Prints into a log as a server would, and counts how often the log says that it is full."""

    def __init__(self, place: Path, limit_bytes: int) -> None:
        self.place = place
        self.full = 0
        self.log = ServerLog(place, limit_bytes, self._on_limit)
        self._end = os.dup(self.log.write_end)
        self.log.start()

    def print(self, *pieces: bytes) -> None:
        for piece in pieces:
            os.write(self._end, piece)

    def end(self) -> None:
        os.close(self._end)
        self.log.close()

    def _on_limit(self) -> None:
        self.full += 1


def test_every_byte_is_kept_as_it_came(tmp_path: Path) -> None:
    printer = Printer(tmp_path / "server.log", 1000)
    printed = b"one\r\ntwo\x1b[31m\n\xff\x00three"
    printer.print(printed[:7], printed[7:])
    printer.end()
    assert printer.place.read_bytes() == printed
    assert printer.place.stat().st_mode & 0o777 == 0o600
    assert (printer.log.kept_bytes, printer.log.printed_bytes, printer.full) == (len(printed), len(printed), 0)
    assert printer.log.sha256 == hashlib.sha256(printed).hexdigest()
    assert printer.log.last_line == "\N{REPLACEMENT CHARACTER}\\x00three"


@pytest.mark.parametrize(("extra", "full"), [(0, 0), (1, 1), (5000, 1)])
def test_the_limit_is_told_once_and_only_when_it_is_passed(tmp_path: Path, extra: int, full: int) -> None:
    printer = Printer(tmp_path / "server.log", 100)
    printer.print(b"x" * 60, b"y" * 40, *(b"z" for _ in range(extra)))
    printer.end()
    kept = b"x" * 60 + b"y" * 40
    assert printer.place.read_bytes() == kept
    assert (printer.full, printer.log.is_over_limit) == (full, bool(full))
    assert (printer.log.kept_bytes, printer.log.printed_bytes) == (100, 100 + extra)
    assert printer.log.sha256 == hashlib.sha256(kept).hexdigest()


def test_the_last_lines_are_known_even_over_the_limit(tmp_path: Path) -> None:
    printer = Printer(tmp_path / "server.log", 10)
    printer.print(b"a" * 100, b"\nout of memory\n\n")
    printer.end()
    assert printer.log.last_line == "out of memory"


def test_a_log_that_nothing_was_printed_into_is_empty(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log", 10, lambda: None)
    log.close()
    assert (tmp_path / "server.log").read_bytes() == b""
    assert log.last_line == ""


def test_an_existing_log_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("of another start")
    with pytest.raises(Refused):
        ServerLog(tmp_path / "server.log", 10, lambda: None)


def test_a_full_disk_ends_the_leg_and_does_not_hang_the_server(tmp_path: Path) -> None:
    told = threading.Event()
    log = ServerLog(tmp_path / "server.log", 1 << 30, told.set)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._file)
    os.close(full)
    end = os.dup(log.write_end)
    log.start()
    for _ in range(64):
        os.write(end, b"x" * 65536)
    assert told.wait(5)
    os.close(end)
    with pytest.raises(OSError, match="No space left"):
        log.close()
    assert log.kept_bytes == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", "plain é"),
        ("\x1b[2J\rPASS", "\\x1b[2J\\rPASS"),
        ("a\u202eb\u2028c\x7f\x85", "a\\u202eb\\u2028c\\x7f\\x85"),
    ],
)
def test_nothing_that_moves_a_cursor_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown
