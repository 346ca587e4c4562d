"""Running a leg: what every leg ends with, whatever happened: its own log, `exit.json`, and its manifest last."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labctl.clock import Clock
from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_file
from labctl.durable import FILE_MODE, open_once, sync_folder, write_once
from labctl.errors import (
    LabctlError,
    LeftoverFound,
    LegFailed,
    LegInterrupted,
    PreflightFailed,
    Problem,
    Refused,
    ServerNotReady,
    StreamBroken,
    WorkerFailed,
)
from labctl.records.leg import LegExit, StopCause
from labctl.rundir import LegPaths

STANDARD_ERROR = 2
EXIT_STATUS = {StopCause.COMPLETED: 0, StopCause.REFUSED: Refused.exit_code}

CAUSES: tuple[tuple[type[LabctlError], StopCause], ...] = (
    (PreflightFailed, StopCause.REFUSED),  # any other refusal is met after something was started
    (ServerNotReady, StopCause.NOT_READY),
    (StreamBroken, StopCause.STREAM),
    (WorkerFailed, StopCause.WORKER),
    (LegInterrupted, StopCause.INTERRUPTED),
    (LeftoverFound, StopCause.LEFTOVER),
)


@contextmanager
def own_log(leg: LegPaths) -> Iterator[None]:
    """Within this block `leg.log` is the standard error."""
    file = open_once(leg.log)
    os.fchmod(file, FILE_MODE)
    before = os.dup(STANDARD_ERROR)
    os.dup2(file, STANDARD_ERROR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, STANDARD_ERROR)
        os.close(before)
        os.fsync(file)
        os.close(file)
        sync_folder(leg.root)


@contextmanager
def always_ended(end: Callable[[], tuple[Problem, ...]]) -> Iterator[None]:
    """Whatever happens within this block, what it started is ended and written down.

    Args:
        end: ends everything, and gives what could not be ended.

    Raises:
        LegFailed: the block's own failure, with what was left added to it.
        LeftoverFound: the block went well, and something was left.
    """
    try:
        yield
    except LegFailed as error:
        raise type(error)((*error.problems, *end())) from error
    except BaseException:  # an exit or an interrupt must leave no process behind either; it goes on after that
        end()
        raise
    if left := end():
        raise LeftoverFound(left)


def close_leg(leg: LegPaths, leg_exit: LegExit) -> None:
    """Write how the leg ended, then the digests of all its files; after this nothing in the folder changes.

    Raises:
        LabctlError: one of the two could not be written.
    """
    write_once(leg.exit, leg_exit.canonical())
    files = (path for path in leg.root.rglob("*") if path.is_file() and path != leg.manifest)
    digests = {path.relative_to(leg.root).as_posix(): sha256_file(path)[0] for path in files}
    write_once(leg.manifest, manifest_lines(digests))


def leg_exit(leg: str, ending: LabctlError | None, rows_completed: int, clock: Clock) -> LegExit:
    """The content of `exit.json`.

    Args:
        leg: the leg's name.
        ending: what ended it, or None when it completed.
        rows_completed: rows whose response came to its end.
        clock: the clock.
    """
    return LegExit(
        leg=leg,
        cause=StopCause.COMPLETED if ending is None else _cause(ending),
        problems=() if ending is None else tuple(str(problem) for problem in ending.problems),
        rows_completed=rows_completed,
        wall_ns=clock.realtime_ns(),
        mono_ns=clock.monotonic_ns(),
    )


def crash(error: Exception) -> LegFailed:
    """A fault of ours, as an error that a record can name."""
    got = f"{type(error).__name__}: {error}"[:400]
    return LegFailed(Problem(Code.LEG_CRASHED, "leg", "no fault in labctl", got, "report leg.log as a bug"))


def exit_status(leg_exit: LegExit) -> int:
    """The exit status of the leg process."""
    return EXIT_STATUS.get(leg_exit.cause, LegFailed.exit_code)


def _cause(error: LabctlError) -> StopCause:
    if Code.LOG_LIMIT in error.codes and isinstance(error, LegInterrupted):
        return StopCause.LOG_LIMIT
    return next((cause for kind, cause in CAUSES if isinstance(error, kind)), StopCause.HOST)
