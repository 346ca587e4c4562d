"""The analyzers as processes: asked in isolation, and bounded in time."""

import os
import subprocess
import sys
from pathlib import Path

from labctl.codes import Code
from labctl.errors import BrokenEvidence, Problem
from labctl.packet.model import PinnedAnalyzer
from labctl.packet.tool import STANDALONE_FILE

ANALYZER_TIMEOUT_S = 1800
NO_BYTECODE = Path(os.devnull)
KNOWN_ANALYZERS = {"labctl": ("-m", "labctl.analyze"), "standalone": ("-S", str(STANDALONE_FILE))}


def identity_problems(pinned: PinnedAnalyzer, bytecode: Path) -> tuple[Problem, ...]:
    """Why an analyzer is not the pinned one, or does not start; empty where it is."""
    try:
        found = PinnedAnalyzer.from_json(
            ask_analyzer(pinned.name, ("--identity",), bytecode), f"analyzer {pinned.name}"
        )
    except BrokenEvidence as error:
        return error.problems
    if found == pinned:
        return ()
    do = "freeze again: labctl has changed since the packet was frozen"
    return (Problem(Code.FILE_DRIFT, f"analyzer {pinned.name}", pinned.sha256, found.sha256, do),)


def ask_analyzer(name: str, arguments: tuple[str, ...], bytecode: Path) -> bytes:
    """What an analyzer says on its output; `bytecode` is the folder of its compiled code.

    Raises:
        BrokenEvidence: it is not known, did not end, or failed (ANALYZER_FAILED).
    """
    how = KNOWN_ANALYZERS.get(name)
    if how is None:
        raise BrokenEvidence(
            Problem(
                Code.ANALYZER_FAILED,
                f"analyzer {name}",
                f"one of {', '.join(KNOWN_ANALYZERS)}",
                "an unknown name",
                "use the release of labctl that froze the packet",
            )
        )
    try:
        answer = _run_analyzer((*how, *arguments), bytecode)
    except subprocess.TimeoutExpired as error:
        do = "look for a pattern or a file that is hard to judge; the run stays sealed"
        limit = f"an answer within {ANALYZER_TIMEOUT_S} s"
        raise BrokenEvidence(Problem(Code.ANALYZER_FAILED, f"analyzer {name}", limit, "none", do)) from error
    if answer.returncode != 0:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing on its error output"]
        raise BrokenEvidence(
            Problem(
                Code.ANALYZER_FAILED, f"analyzer {name}", "an answer", line[:600], f"exit status {answer.returncode}"
            )
            for line in lines[-20:]
        )
    return answer.stdout


def _run_analyzer(arguments: tuple[str, ...], bytecode: Path) -> "subprocess.CompletedProcess[bytes]":
    """Nothing of it lies in a folder that a killed parent would leave: what it says, it says on its output."""
    return subprocess.run(
        [sys.executable, "-I", "-P", "-X", f"pycache_prefix={bytecode}", *arguments],
        capture_output=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        timeout=ANALYZER_TIMEOUT_S,
    )
