"""Lines of a log by pattern: the same in chunks of any size, and by the texts that a match needs."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.analyze.log_lines import file_chunks, find_lines, log_chunks

LOG = b"INFO one\r\nWARN two graphs=146\n\nWARN graphs=145 on rank 3\r\nlast WARN"
PATTERNS = ["WARN", "o$", "^$", r"graphs=(?P<graphs>[0-9]+)(?: on rank (?P<rank>[0-9]))?", "absent", "(?i)warn"]


def plainly(log: bytes, pattern: str) -> list[bytes]:
    lines = [line.removesuffix(b"\r") for line in log.split(b"\n")]
    return [line for line in lines if re.search(pattern.encode(), line)]


def cut(log: bytes, size: int) -> list[bytes]:
    return [log[at : at + size] for at in range(0, len(log), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 1000])
def test_chunks_of_any_size_give_the_same_lines(size: int) -> None:
    found = find_lines(cut(LOG, size), PATTERNS)
    assert found == find_lines(log_chunks(LOG), PATTERNS)
    for pattern in PATTERNS:
        lines = plainly(LOG, pattern)
        assert (found[pattern].count, found[pattern].first) == (len(lines), lines[0] if lines else None)


def test_named_groups_are_counted_and_absent_ones_left_out() -> None:
    found = find_lines(log_chunks(LOG), PATTERNS)[PATTERNS[3]]
    assert found.groups == {(("graphs", "146"),): 1, (("graphs", "145"), ("rank", "3")): 1}


def test_a_log_on_disk_is_read_like_one_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(LOG * 200_000)
    assert find_lines(file_chunks(path), ["WARN"])["WARN"].count == 600_000
    assert find_lines(file_chunks(path), ["WARN"]) == find_lines(log_chunks(LOG * 200_000), ["WARN"])


@given(st.lists(st.sampled_from([b"ab", b"a", b"b", b"\n", b"\r", b"\r\n", b"\xff"]), max_size=12).map(b"".join))
def test_a_pattern_sees_exactly_the_lines(log: bytes) -> None:
    for pattern in ("ab", "a$", "^b", "(?:a|b)b"):
        lines = plainly(log, pattern)
        found = find_lines(cut(log, 3), [pattern])[pattern]
        assert (found.count, found.first) == (len(lines), lines[0] if lines else None)
