"""What a leg wrote down about its end, as problems of the run: the leg's own words, nothing around them."""

import re
from dataclasses import replace

from labctl.codes import Code
from labctl.errors import LegFailed, Problem
from labctl.records.leg import LegExit
from labctl.rundir import LegPaths

SERVER_LOG, WORKER_LOG = "server.log", "worker.log"
_LINE = re.compile(
    r"(?P<where>.*?): expected (?P<expected>.*?), got (?P<got>.*); (?P<do>.*) \[(?P<code>[A-Z_]+)\]", re.DOTALL
)


def leg_not_completed(files: LegPaths, record: LegExit, status: int) -> LegFailed:
    """The error of a leg that ended otherwise than completed; each of its problems says where the log lies."""
    problems = [problem for line in record.problems if (problem := _parsed(line)) is not None]
    if not problems or len(problems) != len(record.problems):
        got = f"cause {record.cause} and exit status {status}: {'; '.join(record.problems) or 'no reason recorded'}"
        problems = [Problem(Code.LEG_CRASHED, "leg", "a complete leg", got, "read leg.log")]
    return LegFailed(_located(problem, files) for problem in problems)


def _parsed(line: str) -> Problem | None:
    found = _LINE.fullmatch(line)
    if found is None or found["code"] not in set(Code):
        return None
    return Problem(Code(found["code"]), found["where"], found["expected"], found["got"], found["do"])


def _located(problem: Problem, files: LegPaths) -> Problem:
    name = files.root.name
    do, word = problem.do, "start"
    folder = f"{files.root.parent.parent.name}/{files.root.parent.name}/{name}"
    if files.server_log.exists():
        log = f"{folder}/{SERVER_LOG}"
        do = do.replace(SERVER_LOG, log) if SERVER_LOG in do else f"{do} (the server's log: {log})"
    elif files.discovery.exists():
        do, word = do.replace(WORKER_LOG, f"{folder}/{WORKER_LOG}"), "leg"
    return replace(problem, where=f"{word} {name}: {problem.where}", do=do)
