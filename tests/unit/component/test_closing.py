"""The record at the end, whatever ended the worker."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from labctl.component.closing import Closing
from labctl.component.order import read_order
from labctl.component.writing import Lines, canonical, write_once
from labctl.records.component import ComponentRecord
from tests.fakes.component_worker import work_of, write_order
from tests.fakes.worker_lies import CAMPAIGN


@pytest.fixture
def closing(tmp_path: Path) -> Closing:
    return Closing(read_order(write_order(tmp_path / "leg", tmp_path, work_of(CAMPAIGN))), "0" * 64)


def record_of(closing: Closing) -> dict[str, Any]:
    data = (closing.order.leg_folder / "component.json").read_bytes()
    assert ComponentRecord.from_json(data, "component.json").canonical() == data
    record: dict[str, Any] = json.loads(data)
    return record


@pytest.mark.parametrize("error", [ValueError("wrong"), SystemExit(0), KeyboardInterrupt(), MemoryError()])
def test_whatever_ends_the_worker_stands_in_the_record(closing: Closing, error: BaseException) -> None:
    with closing:
        closing.stage = "checkpoint"
        raise error
    ending = record_of(closing)["ending"]
    assert (ending["kind"], ending["stage"], ending["exception"]) == ("failed", "checkpoint", type(error).__name__)
    assert closing.exit_status == 4


def test_a_long_message_is_cut(closing: Closing) -> None:
    with closing:
        raise ValueError("x" * 5000)
    assert record_of(closing)["ending"]["message"] == "x" * 2000


def test_rows_that_do_not_reach_the_disk_make_the_worker_fail(closing: Closing) -> None:
    with closing:
        os.close(closing._lines._descriptor)
    assert record_of(closing)["ending"]["exception"] == "OSError"
    assert closing.exit_status == 4


def test_an_end_without_a_fault_is_completed(closing: Closing) -> None:
    with closing:
        pass
    assert record_of(closing)["ending"] == {"kind": "completed"}
    assert closing.exit_status == 0


def test_a_record_is_never_written_over(tmp_path: Path) -> None:
    write_once(tmp_path / "a", b"1")
    with pytest.raises(FileExistsError):
        write_once(tmp_path / "a", b"2")
    with pytest.raises(FileExistsError):
        Lines(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"1"


def test_lines_are_whole_and_in_order(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "lines")
    for number in range(50):
        assert lines.append({"n": number}) == canonical({"n": number})
    lines.settle()
    assert [json.loads(line)["n"] for line in (tmp_path / "lines").read_text().splitlines()] == list(range(50))
