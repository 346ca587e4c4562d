import fcntl
import json
import os
from collections.abc import Iterator

import pytest

from labctl.leg.progress import Progress


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_an_event_is_one_json_line(pipe: tuple[int, int]) -> None:
    Progress(pipe[1]).tell("row", row=3, of=13)
    assert os.read(pipe[0], 4096) == b'{"event":"row","of":13,"row":3}\n'


def test_a_reader_that_went_away_does_no_harm(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    Progress(pipe[1]).tell("row", row=3)
    with pytest.raises(BrokenPipeError):  # nobody reads indeed
        os.write(pipe[1], b"x")


def test_a_reader_that_stopped_reading_does_not_stop_the_leg(pipe: tuple[int, int]) -> None:
    capacity_bytes = fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 4096)
    progress = Progress(pipe[1])
    for row in range(capacity_bytes):
        progress.tell("row", row=row)
    lines = os.read(pipe[0], capacity_bytes).splitlines()
    assert [json.loads(line)["row"] for line in lines] == list(range(len(lines)))
    assert 0 < len(lines) < capacity_bytes


def test_a_line_that_a_pipe_may_tear_is_left_out(pipe: tuple[int, int]) -> None:
    progress = Progress(pipe[1])
    progress.tell("row", text="x" * 5000)
    progress.tell("end")
    assert os.read(pipe[0], 8192) == b'{"event":"end"}\n'
