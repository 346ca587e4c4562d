"""Run the registered host checks in the exported snapshot, and keep what they said by digest."""

import os
import re
import select
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import FreezeRefused, Problem
from labctl.packet.contents import Ground, Progress, Subject
from labctl.packet.environment import base_environment
from labctl.packet.git_command import run_git
from labctl.packet.interpreter import interpreter_path
from labctl.packet.model import HostCheckResult
from labctl.prereg.model import HostCheck

_COUNT = re.compile(
    r"\b([0-9]{1,9}) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|tests?|files?)\b"
)
_COUNTED_LINES = 5
_TAIL_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class CheckPlace:
    """Where host checks run."""

    snapshot: Path
    python: Path


@dataclass(frozen=True, slots=True)
class _Ended:
    status: int | None
    stdout: bytes
    stderr: bytes


def run_host_checks(subject: Subject, ground: Ground, progress: Progress) -> tuple[HostCheckResult, ...]:
    """Run every registered check, in order.

    Raises:
        FreezeRefused: with every check that failed, and the end of what it printed (HOST_CHECK_FAILED).
    """
    checks = subject.preregistration.host_checks
    if not checks:
        return ()
    progress(f"running {len(checks)} host checks in the snapshot")
    give_history(ground.snapshot, ground.repository, ground.facts.commit)
    python = interpreter_path(subject.host, subject.preregistration.interpreter, ground.repository)
    place = CheckPlace(ground.snapshot, python)
    ended = [(check, _run(check, place)) for check in checks]
    problems = [_failure(check, end) for check, end in ended if end.status != 0]
    if problems:
        raise FreezeRefused(problems)
    return tuple(_result(check, end) for check, end in ended)


def give_history(snapshot: Path, repository: Path, commit: str) -> None:
    """Make the snapshot a repository of its own at the commit, which reads the other's objects and writes none there.

    Checks such as `git diff --check` need a history; they must never be able to change the campaign's repository.

    Raises:
        DirtySource: git does not answer.
    """
    objects = os.fsdecode(run_git(repository, "rev-parse", "--git-path", "objects").rstrip(b"\n"))
    object_format = "sha1" if len(commit) == 40 else "sha256"  # noqa: PLR2004 (hex digits of a SHA-1)
    run_git(snapshot, "init", "--quiet", f"--object-format={object_format}", "--template=")
    information = snapshot / ".git" / "objects" / "info"
    information.mkdir(exist_ok=True)
    (information / "alternates").write_bytes(os.fsencode((repository / objects).resolve()) + b"\n")
    run_git(snapshot, "update-ref", "--no-deref", "HEAD", commit)
    run_git(snapshot, "read-tree", "HEAD")


def _run(check: HostCheck, place: CheckPlace) -> _Ended:
    command = [part.replace("{python}", str(place.python)) for part in check.command]
    with tempfile.TemporaryDirectory(prefix="labctl-check-") as private:
        folder = Path(private)
        (folder / "home").mkdir()
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=place.snapshot,
                    env=base_environment(home=f"{private}/home", temporary=private),
                    start_new_session=True,
                )
            except OSError as error:
                return _Ended(None, b"", str(error).encode())
            status = _wait(process, check.timeout_s)
        return _Ended(status, (folder / "stdout").read_bytes(), (folder / "stderr").read_bytes())


def _wait(process: subprocess.Popen[bytes], timeout_s: int) -> int | None:
    ended = os.pidfd_open(process.pid)
    try:
        is_over, _, _ = select.select([ended], [], [], timeout_s)
        # whatever the check left running goes with it; until the wait below its id can be no other process's
        os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        return status if is_over else None
    finally:
        os.close(ended)


def _failure(check: HostCheck, end: _Ended) -> Problem:
    tail = (end.stdout + end.stderr).decode("utf-8", "replace").strip()[-_TAIL_CHARACTERS:]
    how = f"exit {end.status}" if end.status is not None else f"no exit within {check.timeout_s} s, or no start"
    do = "make the check pass, commit, and freeze again"
    return Problem(Code.HOST_CHECK_FAILED, f"host check {check.name}", "exit 0", f"{how}: {tail!r}", do)


def _result(check: HostCheck, end: _Ended) -> HostCheckResult:
    return HostCheckResult(
        name=check.name,
        command=check.command,
        exit_status=end.status if end.status is not None else -1,
        counts=_counts(end.stderr) | _counts(end.stdout),
        stdout_sha256=sha256_hex(end.stdout),
        stdout_bytes=len(end.stdout),
        stderr_sha256=sha256_hex(end.stderr),
        stderr_bytes=len(end.stderr),
    )


def _counts(output: bytes) -> dict[str, int]:
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    found = _COUNT.findall("\n".join(lines[-_COUNTED_LINES:]))
    return {word: int(number) for number, word in found}
