"""Asking a tool about cards: one process with a closed environment and a time limit, its words kept."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import PreflightFailed, Problem
from labctl.records.devices import ToolAnswer

ANSWER_LIMIT_BYTES = 4 << 20
AFTER_KILL_S = 5.0


def ask(argv: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> ToolAnswer:
    """Run a tool to its end and take what it printed.

    Raises:
        PreflightFailed: there is no such tool, it does not end in time, or it prints no text (PREFLIGHT).
    """
    # A file, not a pipe: whoever inherits a pipe could hold it open after the tool was killed.
    with tempfile.TemporaryFile() as output:
        child = _start(argv, environment, output)
        try:
            status = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            got = f"no end after {timeout_s:g} s, {_stop(child)}"
            raise _refusal(argv, "an answer", got, "look at the kernel's log; the driver may hang") from None
        output.seek(0)
        data = output.read(ANSWER_LIMIT_BYTES + 1)
    return ToolAnswer(
        argv=tuple(argv),
        pid=child.pid,
        exit_status=status,
        stdout=_text(argv, data),
        stdout_sha256=sha256_hex(data),
    )


def _start(argv: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        do = "install it, or name it in the host profile's `devices`"
        raise _refusal(argv, "a tool that starts", error.strerror or str(error), do) from error


def _stop(child: subprocess.Popen[bytes]) -> str:
    """Kill the tool; one that waits for a lost device inside the kernel cannot be killed, and nobody waits for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # its own group, and not reaped yet: nobody else can have the number
    try:
        child.wait(AFTER_KILL_S)
    except subprocess.TimeoutExpired:
        return f"and process {child.pid} cannot be killed"
    return "so it was killed"


def _text(argv: Sequence[str], data: bytes) -> str:
    if len(data) > ANSWER_LIMIT_BYTES:
        raise _refusal(argv, f"at most {ANSWER_LIMIT_BYTES} bytes", "more", "see what it prints")
    try:
        return data.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        raise _refusal(argv, "UTF-8", str(error), "see what it prints") from error


def _refusal(argv: Sequence[str], expected: str, got: str, do: str) -> PreflightFailed:
    return PreflightFailed(Problem(Code.PREFLIGHT, f"`{' '.join(argv)}`", expected, got, do))
