"""Let the n-th system call of a kind fail, or kill the process in it, while a packet is consumed or a run is sealed.

`inject_into_marker(folder, Injection("fsync", "error=EIO", 2))` consumes a packet in a child under strace, looks at
what is left, and says what it found; None where the call was never made so often, so that everything ran through. What
is not legal afterwards is an `AssertionError`: an unnamed end, a second consumption, a ledger line without a marker, a
seal that does not verify, or a run that can neither be sealed nor says why.

Only calls on the paths of the packet or of the run count: strace's `-P` leaves the interpreter's own alone. A call is
counted for each thread by itself, as strace does.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import SystemClock
from labctl.errors import AlreadyConsumed, LabctlError
from labctl.ledger import read_ledger
from labctl.marker_state import MarkerValid, read_marker_state
from labctl.records.run import NOTHING_SHA256
from labctl.rundir import AuthorizationPaths
from labctl.seal.abort import Abortion, seal_aborted
from labctl.seal.verify import SealState, open_sealed_run, seal_state
from tests.fakes.consuming import consume
from tests.fakes.packets import make_packet
from tests.fakes.sealed_run import RUN_NAME, write_run
from tests.faults.crash.races import TOP, prepare_packet

CALLS = ("openat", "write", "fsync", "fchmod", "close", "mkdir", "ftruncate", "rename", "link", "unlink")
FAULTS = ("error=EIO", "error=ENOSPC", "signal=KILL")
NAMED_ENDS = (0, 3, 4, 5, -signal.SIGKILL, 128 + signal.SIGKILL)
HAS_STRACE = shutil.which("strace") is not None


@dataclass(frozen=True, slots=True)
class Injection:
    """Which call fails, how, and the how-manieth."""

    call: str
    fault: str
    number: int

    @property
    def is_kill(self) -> bool:
        """Whether the process is killed in the call."""
        return "KILL" in self.fault


Target = Callable[[Path, Injection], str | None]


def every_injection(target: Target, folder: Path) -> Iterator[tuple[Injection, str]]:
    """Each call of each kind, with each fault, until the target runs through; what was left after each."""
    for call in CALLS:
        for fault in FAULTS:
            number = 1
            while (
                found := target(folder / f"{call}-{fault[-4:]}-{number}", Injection(call, fault, number))
            ) is not None:
                yield Injection(call, fault, number), found
                number += 1


def inject_into_marker(folder: Path, injection: Injection) -> str | None:
    """Consume a packet with a fault; the state that is left."""
    authorization = prepare_packet(folder / "authorization")
    if injection.call != "mkdir":  # what is made anew cannot be watched from the start by its path
        authorization.markers.mkdir(mode=0o700)
        authorization.ledger.parent.mkdir(mode=0o700)
    marker = authorization.marker(make_packet().id)
    places = (marker, marker.parent, authorization.ledger, authorization.ledger.parent)
    command = [sys.executable, "-m", "tests.fakes.consuming", str(authorization.root)]
    done = _traced(folder, injection, [*map(str, places), marker.name], command)
    if done is None:
        shutil.rmtree(folder)
        return None
    found = _require_legal_marker(authorization, done, is_kill=injection.is_kill)
    shutil.rmtree(folder)
    return found


def inject_into_seal(folder: Path, injection: Injection) -> str | None:
    """Seal a run with a fault; the state that is left."""
    root = folder / RUN_NAME
    write_run(root)
    tags = ("bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt", "seal.json")
    places = [root, *root.rglob("*"), root / "data/layout.json", *(root / name for name in tags)]
    names = {path.name for path in places}
    command = [sys.executable, "-m", "tests.fakes.sealed_run", str(root)]
    done = _traced(folder, injection, [*map(str, places), *sorted(names)], command)
    if done is None:
        shutil.rmtree(folder)
        return None
    found = _require_legal_run(root, done)
    shutil.rmtree(folder)
    return found


def _traced(
    folder: Path, injection: Injection, places: list[str], command: list[str]
) -> "subprocess.CompletedProcess[str] | None":
    """The command under strace; None where the fault did not fire."""
    log = folder / "trace"
    paths = [word for place in places for word in ("-P", place)]
    inject = f"inject={injection.call}:{injection.fault}:when={injection.number}"
    done = subprocess.run(
        ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={injection.call}", *paths, "-e", inject, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=TOP,
    )
    text = log.read_text()
    has_fired = "killed by SIGKILL" in text if injection.is_kill else "(INJECTED)" in text
    if not has_fired:
        assert done.returncode == 0, done.stdout + done.stderr
        return None
    assert done.returncode in NAMED_ENDS, done.stdout + done.stderr
    assert (done.returncode in NAMED_ENDS[-2:]) == injection.is_kill
    return done


def _require_legal_marker(
    authorization: AuthorizationPaths, done: "subprocess.CompletedProcess[str]", *, is_kill: bool
) -> str:
    packet_id = make_packet().id
    has_won = done.returncode == 0
    is_marked = os.path.lexists(authorization.marker(packet_id))
    lines = read_ledger(authorization.ledger)
    if has_won or lines:
        assert isinstance(read_marker_state(authorization, packet_id), MarkerValid)
    if has_won:
        assert len(lines) == 1
    if not is_kill:
        assert is_marked == (done.returncode in (0, 4)), done.stdout
    try:
        consume(authorization.root)
    except AlreadyConsumed:
        assert is_marked
        return "spent, and refused a second time"
    assert not is_marked
    assert len(read_ledger(authorization.ledger)) == 1
    return "not spent, and consumed once after that"


def _require_legal_run(root: Path, done: "subprocess.CompletedProcess[str]") -> str:
    if seal_state(root) is SealState.SEALED:
        open_sealed_run(root)
        return "sealed"
    assert done.returncode != 0
    abortion = Abortion("its sealing failed", NOTHING_SHA256, SystemClock())
    try:
        seal_aborted(root, abortion)
    except LabctlError as error:
        return f"unsealed, and refused: {error.codes[0]}"
    open_sealed_run(root)
    return "unsealed, and then sealed as aborted"
