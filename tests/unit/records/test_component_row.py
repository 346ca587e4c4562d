"""Files of canonical lines: rows of a worker and stages of a rank, read whole or refused with every problem."""

import json

import pytest

from labctl.codes import Code
from labctl.errors import MalformedRecord
from labctl.frozen import canonical_json
from labctl.records.component_row import read_rows
from labctl.records.probe import STAGES, read_rank

ROW = {
    "schema": "labctl/component-row/1",
    "row": 1,
    "arm": "plain",
    "case": "w1",
    "repeat": 1,
    "row_seed": 7,
    "inputs": [],
    "boundaries": [],
    "caches": [],
    "buffers": [],
    "sample": None,
    "inputs_after": [],
    "started_mono_ns": 1,
    "ended_mono_ns": 2,
}
STAGE = {
    "schema": "labctl/probe-stage/1",
    "rank": 0,
    "nonce": "00",
    "pid": 5,
    "wall_ns": 1,
    "mono_ns": 1,
    "stage": "all_reduce-start",
    "detail": {},
}


def test_canonical_lines_are_read_in_order() -> None:
    data = canonical_json(ROW) + canonical_json({**ROW, "row": 2})
    assert [row.row for row in read_rows(data, "rows.jsonl")] == [1, 2]
    assert [line.stage for line in read_rank(canonical_json(STAGE), "rank-0.jsonl")] == ["all_reduce-start"]


def test_no_line_is_no_row() -> None:
    assert read_rows(b"", "rows.jsonl") == ()


@pytest.mark.parametrize(
    "data",
    [
        canonical_json(ROW)[:-1],
        json.dumps(ROW).encode() + b"\n",
        canonical_json(ROW)[:40],
        canonical_json(ROW).replace(b'"row":1', b'"row":1,"row":1'),
        canonical_json(ROW).replace(b'"row_seed":7', b'"row_seed":7.0'),
        b"\n",
        b"null\n",
        b"\xff\n",
    ],
    ids=["no newline", "spaces", "cut", "equal keys", "a float", "empty line", "null", "no text"],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRecord) as refused:
        read_rows(data, "rows.jsonl")
    assert refused.value.codes[0] is Code.RECORD_FORM
    assert refused.value.problems[0].where.startswith("rows.jsonl:1")


def test_every_problem_of_a_file_is_told_at_once() -> None:
    data = canonical_json({**ROW, "row": 0}) + canonical_json(ROW) + canonical_json({**ROW, "arm": "/"})
    with pytest.raises(MalformedRecord) as refused:
        read_rows(data, "rows.jsonl")
    assert [problem.where for problem in refused.value.problems] == ["rows.jsonl:1: row", "rows.jsonl:3: arm"]


@pytest.mark.parametrize("stage", [*STAGES, "failed"])
def test_each_stage_has_a_detail_of_its_own(stage: str) -> None:
    if stage in ("all_reduce-start", "all_reduce-done", "teardown-done"):
        assert read_rank(canonical_json({**STAGE, "stage": stage}), "rank-0.jsonl")[0].stage == stage
        return
    with pytest.raises(MalformedRecord):
        read_rank(canonical_json({**STAGE, "stage": stage}), "rank-0.jsonl")


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(MalformedRecord):
        read_rank(canonical_json({**STAGE, "stage": "recovered"}), "rank-0.jsonl")
