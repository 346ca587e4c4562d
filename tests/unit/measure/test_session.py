from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import LegInterrupted, Problem, StreamBroken
from labctl.measure.session import PlannedRequest, SessionPlan, measure_prompts
from labctl.measure.wire import RowLimits
from labctl.records.requests import Generation, request_body
from labctl.records.wire import RowClosed, read_wire_row
from labctl.rundir import LegPaths
from tests.fakes.stream_server import Hold, Send, Step, StreamServer, response, token_stream

GENERATION = Generation(model="m", max_tokens=4, seed=1)
BEFORE: list[Step] = [Send(response("200 OK", "text/plain", b"requests 0\n"))]
AFTER: list[Step] = [Send(response("200 OK", "text/plain", b"requests 3\n"))]
BROKEN: list[Step] = [Send(response("500 Oops", "application/json", b"{}"))]


def good() -> list[Step]:
    return list(token_stream(4))


def plan_for(server: StreamServer, *, read_s: float = 5) -> SessionPlan:
    return SessionPlan(
        host=server.host,
        port=server.port,
        path="/v1/completions",
        metrics_path="/metrics",
        metrics_timeout_s=1,
        limits=RowLimits(read_s=read_s, drain_s=0.2),
        requests=tuple(
            PlannedRequest(prompt_id=f"p{number}", body=request_body(GENERATION, f"prompt {number}"))
            for number in (1, 2, 3)
        ),
    )


def ignore(row: int, closed: RowClosed) -> None:
    assert row
    assert closed.ended


def names(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def asked(server: StreamServer) -> list[str]:
    return [request.split(b" ", 2)[1].decode() for request in server.requests]


def test_counters_surround_every_prompt_once_in_order(tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []
    leg = LegPaths(tmp_path)
    with StreamServer(BEFORE, good(), good(), good(), AFTER) as server:
        plan = plan_for(server)
        measure_prompts(plan, leg, SystemClock(), lambda row, closed: seen.append((row, closed.ended)))
    assert asked(server) == ["/metrics", *["/v1/completions"] * 3, "/metrics"]
    assert [
        request.endswith(planned.body) for request, planned in zip(server.requests[1:4], plan.requests, strict=True)
    ]
    assert all(
        request.endswith(planned.body) for request, planned in zip(server.requests[1:4], plan.requests, strict=True)
    )
    assert seen == [(1, "complete"), (2, "complete"), (3, "complete")]
    assert leg.metrics_before.read_bytes() == b"requests 0\n"
    assert leg.metrics_after.read_bytes() == b"requests 3\n"
    for number in (1, 2, 3):
        row = read_wire_row(leg.wire_reads(number).read_bytes(), leg.wire_bytes(number).read_bytes(), "w")
        assert (row.opened.row, row.opened.prompt_id) == (number, f"p{number}")
    assert len(set(server.peers)) == len(server.peers) == 5


def test_the_first_broken_row_ends_the_session_with_its_files_on_disk(tmp_path: Path) -> None:
    with StreamServer(BEFORE, good(), BROKEN, AFTER) as server, pytest.raises(StreamBroken) as caught:
        measure_prompts(plan_for(server), LegPaths(tmp_path), SystemClock(), ignore)
    assert caught.value.codes == (Code.STREAM_BROKEN,)
    assert "row 2 (p2)" in str(caught.value)
    assert "status_not_200 (status 500)" in str(caught.value)
    assert names(tmp_path) == [
        "metrics-after.prom",
        "metrics-before.prom",
        "wire/01.bin",
        "wire/01.reads.jsonl",
        "wire/02.bin",
        "wire/02.reads.jsonl",
    ]
    assert asked(server) == ["/metrics", "/v1/completions", "/v1/completions", "/metrics"]


def test_a_row_without_an_answer_ends_the_session_as_a_timeout(tmp_path: Path) -> None:
    hanging: list[Step] = [*good()[:3], Hold()]
    with StreamServer(BEFORE, hanging) as server, pytest.raises(StreamBroken) as caught:
        measure_prompts(plan_for(server, read_s=0.2), LegPaths(tmp_path), SystemClock(), ignore)
    assert caught.value.codes == (Code.REQUEST_TIMEOUT,)
    assert names(tmp_path) == ["metrics-before.prom", "wire/01.bin", "wire/01.reads.jsonl"]


def test_without_counters_no_prompt_is_asked(tmp_path: Path) -> None:
    with StreamServer(BROKEN, good()) as server, pytest.raises(StreamBroken):
        measure_prompts(plan_for(server), LegPaths(tmp_path), SystemClock(), ignore)
    assert asked(server) == ["/metrics"]
    assert names(tmp_path) == []


def test_what_is_raised_between_rows_ends_the_session(tmp_path: Path) -> None:
    problem = Problem(Code.LIFELINE_CUT, "leg", "a byte a second", "none", "start the campaign again as a new attempt")

    def stop(row: int, closed: RowClosed) -> None:
        assert (row, closed.ended) == (1, "complete")
        raise LegInterrupted(problem)

    with StreamServer(BEFORE, good(), good()) as server, pytest.raises(LegInterrupted):
        measure_prompts(plan_for(server), LegPaths(tmp_path), SystemClock(), stop)
    assert asked(server) == ["/metrics", "/v1/completions"]
    assert "wire/01.reads.jsonl" in names(tmp_path)
