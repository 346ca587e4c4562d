import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import BrokenEvidence
from labctl.ledger import LedgerEvent, append_ledger, find_consumed, last_digest, read_ledger
from labctl.records.run import NOTHING_SHA256

PACKET = "7" * 64


def event(number: int = 0) -> LedgerEvent:
    return LedgerEvent("consumed", PACKET, "quick-test", f"run-{number}", f"{number:064x}", number)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger" / "consumed.jsonl"
    for number in range(3):
        append_ledger(path, event(number))
    return path


def codes(path: Path) -> set[Code]:
    with pytest.raises(BrokenEvidence) as caught:
        read_ledger(path)
    return set(caught.value.codes)


def test_lines_follow_each_other(ledger: Path) -> None:
    lines = read_ledger(ledger)
    assert [line.seq for line in lines] == [0, 1, 2]
    assert lines[0].prev == NOTHING_SHA256
    assert append_ledger(ledger, event(3)) == last_digest(ledger)
    assert read_ledger(ledger)[3].prev != lines[2].prev


def test_an_absent_ledger_has_no_line(tmp_path: Path) -> None:
    assert read_ledger(tmp_path / "none") == ()
    assert last_digest(tmp_path / "none") == NOTHING_SHA256
    assert find_consumed(tmp_path / "none", PACKET) is None


def test_a_consumption_is_found_by_its_packet(ledger: Path) -> None:
    found = find_consumed(ledger, PACKET)
    assert found is not None
    assert found.run_dir == "run-0"
    assert find_consumed(ledger, "8" * 64) is None


def test_the_seal_of_a_run_is_no_consumption(tmp_path: Path) -> None:
    path = tmp_path / "consumed.jsonl"
    append_ledger(path, LedgerEvent("sealed", PACKET, "quick-test", "run", "0" * 64, 1))
    assert find_consumed(path, PACKET) is None


def test_a_torn_last_line_breaks_the_ledger_and_nothing_is_added(ledger: Path) -> None:
    whole = ledger.read_bytes()
    for cut in (1, 2, 100):
        ledger.write_bytes(whole[:-cut])
        assert codes(ledger) == {Code.LEDGER_BROKEN}
        with pytest.raises(BrokenEvidence):
            append_ledger(ledger, event(4))
        assert ledger.read_bytes() == whole[:-cut]


def test_a_removed_changed_or_swapped_line_breaks_the_chain(ledger: Path) -> None:
    first, second, third = ledger.read_bytes().splitlines(keepends=True)
    for spoilt in (second + third, first + third, second + first + third, first.replace(b"run-0", b"run-9") + second):
        ledger.write_bytes(spoilt)
        assert codes(ledger) == {Code.LEDGER_BROKEN}


def test_a_ledger_that_is_a_link_or_a_fifo_is_broken(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        assert codes(tmp_path / name) == {Code.LEDGER_BROKEN}
        with pytest.raises(BrokenEvidence):
            append_ledger(tmp_path / name, event())
    assert not (tmp_path / "elsewhere").exists()


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        append_ledger(tmp_path / "ledger" / "consumed.jsonl", event())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "ledger" / "consumed.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ledger").stat().st_mode) == 0o700


def test_lines_of_many_processes_form_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "consumed.jsonl"
    program = (
        "import sys\nfrom pathlib import Path\nfrom labctl.ledger import LedgerEvent, append_ledger\n"
        "for n in range(5):\n"
        "    append_ledger(Path(sys.argv[1]), LedgerEvent('sealed', '7' * 64, 'c', sys.argv[2], '0' * 64, n))\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, str(path), f"run-{n}"]) for n in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    lines = read_ledger(path)
    assert len(lines) == 20
    assert {sum(line.run_dir == f"run-{n}" for line in lines) for n in range(4)} == {5}
