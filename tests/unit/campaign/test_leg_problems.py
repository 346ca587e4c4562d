from pathlib import Path

from labctl.campaign.leg_problems import leg_not_completed
from labctl.codes import Code
from labctl.errors import LegFailed, Problem
from labctl.records.leg import LegExit, StopCause
from labctl.rundir import LegPaths, RunPaths

EXITED = Problem(
    Code.SERVER_EXITED,
    "server",
    "a process that runs until it is stopped",
    "exit status 2, last log line 'error: expected one of: a; got b'",
    "read server.log",
)
BROKEN = Problem(Code.STREAM_BROKEN, "row 2", "a complete response", "a reset", "see the wire files")


def started_leg(folder: Path) -> LegPaths:
    files = RunPaths(folder).leg(2, "B1")
    files.root.mkdir(parents=True)
    files.server_log.write_bytes(b"")
    return files


def ended(*problems: str) -> LegExit:
    return LegExit(leg="B1", cause=StopCause.NOT_READY, problems=problems, rows_completed=0, wall_ns=1, mono_ns=1)


def lines_of(error: LegFailed) -> list[str]:
    return [str(problem) for problem in error.problems]


def test_the_run_repeats_the_legs_own_problem_and_nests_nothing(tmp_path: Path) -> None:
    error = leg_not_completed(started_leg(tmp_path), ended(str(EXITED)), 4)
    assert lines_of(error) == [
        "start 02-B1: server: expected a process that runs until it is stopped, got exit status 2, last log line "
        "'error: expected one of: a; got b'; read data/legs/02-B1/server.log [SERVER_EXITED]"
    ]
    assert error.codes == (Code.SERVER_EXITED,)


def test_every_problem_of_a_leg_is_a_line_and_names_the_servers_log(tmp_path: Path) -> None:
    error = leg_not_completed(started_leg(tmp_path), ended(str(BROKEN), str(EXITED)), 4)
    assert error.codes == (Code.STREAM_BROKEN, Code.SERVER_EXITED)
    assert all("data/legs/02-B1/server.log" in line for line in lines_of(error))


def test_no_log_is_named_where_no_server_was_started(tmp_path: Path) -> None:
    files = started_leg(tmp_path)
    files.server_log.unlink()
    (line,) = lines_of(leg_not_completed(files, ended(str(BROKEN)), 4))
    assert line == f"start 02-B1: {BROKEN}"


def test_a_leg_that_gives_no_reason_or_an_unreadable_one_crashed(tmp_path: Path) -> None:
    files = started_leg(tmp_path)
    for problems in ((), ("it broke",), (str(EXITED), "x: expected a, got b; c [NO_SUCH_CODE]")):
        error = leg_not_completed(files, ended(*problems), 4)
        assert error.codes == (Code.LEG_CRASHED,)
        assert all(line in str(error) for line in problems) or "no reason recorded" in str(error)
