"""One leg as a child process: the lifeline that keeps it alive, and the progress that it prints."""

import contextlib
import json
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from labctl.campaign.leftovers import hold
from labctl.campaign.leg_problems import leg_not_completed
from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, LegFailed, LegInterrupted, Problem
from labctl.records.leg import LegExit, StopCause
from labctl.rundir import LegPaths

BEAT_NS = 1_000_000_000
TAIL_BYTES = 4000
RECORD_LIMIT_BYTES = 1 << 20
LEG_ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


@dataclass(slots=True)
class StopRequest:
    """Set by a signal handler; the controller looks at it once a second."""

    signal_name: str | None = None

    def set_from_signal(self, number: int, _frame: object) -> None:
        """A `signal.signal` handler."""
        self.signal_name = signal.Signals(number).name


@dataclass(frozen=True, slots=True)
class LegWatch:
    """What the controller needs while a leg runs."""

    clock: Clock
    stop: StopRequest
    on_progress: Callable[[dict[str, object]], None]


def run_leg_process(files: LegPaths, scratch: Path, watch: LegWatch) -> LegExit:
    """Start `labctl.leg` on a work order, keep its lifeline, and give back how it ended.

    Raises:
        LegFailed: the leg did not complete, or ended without a record.
        LegInterrupted: a signal asked the controller to stop.
    """
    errors_path = scratch / f"{files.root.name}.stderr"
    with errors_path.open("wb") as errors:
        process = _start(files, scratch, errors)
        try:
            hold(process.pid)
            _keep_alive(process, watch)
        finally:
            if process.poll() is None:
                _end(process)
    return _judge_exit(files, process.returncode, errors_path, watch.stop)


def bytecode_folder(scratch: Path) -> Path:
    """Where one campaign's processes keep compiled code: fresh, so that none that was there before is run."""
    return scratch / "pycache"


def leg_command(scratch: Path) -> list[str]:
    """How the program of a leg is started, up to its order."""
    return [sys.executable, "-I", "-P", "-X", f"pycache_prefix={bytecode_folder(scratch)}", "-m", "labctl.leg"]


def wait(seconds: int, watch: LegWatch) -> None:
    """The registered wait between two starts; a stop request ends it early."""
    end_ns = watch.clock.monotonic_ns() + seconds * 1_000_000_000
    while watch.stop.signal_name is None and watch.clock.monotonic_ns() < end_ns:
        watch.clock.sleep(min(0.25, (end_ns - watch.clock.monotonic_ns()) / 1e9))


def _start(files: LegPaths, scratch: Path, errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*leg_command(scratch), str(files.order)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=scratch,
        env=LEG_ENVIRONMENT,
        start_new_session=True,
    )


def _keep_alive(process: "subprocess.Popen[bytes]", watch: LegWatch) -> None:
    """Write one byte a second and pass progress on, until the leg's output ends or a stop is asked for."""
    if process.stdout is None or process.stdin is None:  # pragma: no cover - both are pipes
        message = "a leg without pipes"
        raise RuntimeError(message)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest = b""
        beat_due_ns = watch.clock.monotonic_ns()
        while watch.stop.signal_name is None:
            if watch.clock.monotonic_ns() >= beat_due_ns:
                _beat(process.stdin)
                beat_due_ns += BEAT_NS
            if not selector.select(timeout=0.25):
                continue
            data = process.stdout.read1(65536)  # type: ignore[attr-defined] # a BufferedReader, typed as IO
            if not data:
                process.wait()
                return
            rest = _pass_on(rest + data, watch.on_progress)
        _end(process)


def _beat(stream: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the leg is ending; its exit record tells why
        stream.write(b".")
        stream.flush()


def _pass_on(data: bytes, on_progress: Callable[[dict[str, object]], None]) -> bytes:
    *lines, rest = data.split(b"\n")
    for line in lines:
        with contextlib.suppress(ValueError):  # progress is for people; a torn line is not evidence of anything
            document = json.loads(line)
            if isinstance(document, dict):
                on_progress(document)
    return rest


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask the leg to stop in order; it stops its own tree and writes its records."""
    process.send_signal(signal.SIGTERM)
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    process.wait()


def _judge_exit(files: LegPaths, status: int, errors_path: Path, stop: StopRequest) -> LegExit:
    # a stop comes first: a leg that had hardly begun leaves no record, and that is no crash
    if stop.signal_name is not None:
        raise LegInterrupted(
            Problem(
                Code.INTERRUPTED,
                f"leg {files.root.name}",
                "to run to its end",
                f"{stop.signal_name} to the controller",
                "the run is sealed as aborted",
            )
        )
    try:
        record = LegExit.from_json(read_regular(files.exit, limit_bytes=RECORD_LIMIT_BYTES), str(files.exit))
    except BrokenEvidence as error:
        raise LegFailed(
            Problem(
                Code.LEG_CRASHED,
                f"leg {files.root.name}",
                "a record of its end",
                f"exit status {status} and none; {_tail(errors_path)}",
                "read the leg's log in the sealed run",
            )
        ) from error
    if record.cause is not StopCause.COMPLETED or status != 0:
        raise leg_not_completed(files, record, status)
    return record


def _tail(path: Path) -> str:
    text = path.read_bytes()[-TAIL_BYTES:].decode("utf-8", "replace").strip()
    return "last error line: " + (text.splitlines()[-1] if text else "nothing")
