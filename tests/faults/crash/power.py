"""Loss of power at every moment of consuming and of sealing: each state that may be found is looked at for real."""

import shutil
import sys
from collections import Counter
from pathlib import Path

from labctl.errors import AlreadyConsumed, BrokenEvidence
from labctl.ledger import read_ledger
from labctl.marker_state import MarkerAbsent, MarkerValid, read_marker_state
from labctl.rundir import SEAL, AuthorizationPaths
from labctl.seal.verify import SealState, open_sealed_run, seal_state
from tests.fakes.consuming import consume
from tests.fakes.packets import make_packet
from tests.fakes.sealed_run import RUN_NAME, write_run
from tests.faults.crash.races import prepare_packet
from tests.faults.crash.states import Disk, Operation, record_operations


def lose_power_while_consuming(folder: Path) -> Counter[str]:
    """What was found in each state; an AssertionError where a leg could have started without a marker on disk."""
    origin = prepare_packet(folder / "origin")
    command = [sys.executable, "-m", "tests.fakes.consuming", str(origin.root)]
    operations = record_operations(origin.root, folder / "trace", command)
    assert [one.kind for one in operations].count("say") == 1
    found: Counter[str] = Counter()
    disk, may_start = Disk(), False
    for operation in [Operation("sync", origin.root), *operations]:
        disk.apply(operation)
        may_start = may_start or operation.kind == "say"  # what follows the answer is the first leg
        for state in disk.states():
            there = _put(state, origin.root, folder / "state")
            shutil.copytree(origin.packets, there / "packets")
            found[_consumption(AuthorizationPaths(there), may_start=may_start)] += 1
            shutil.rmtree(there)
    return found


def lose_power_while_sealing(folder: Path) -> Counter[str]:
    """What was found in each state; an AssertionError where a seal is there and the manifest's files are not."""
    root = folder / "origin" / RUN_NAME
    write_run(root)
    disk = Disk(
        dict.fromkeys(sorted(root.rglob("*")), False),
        {path: (0, path.stat().st_size) for path in root.rglob("*") if path.is_file()},
    )
    operations = record_operations(root, folder / "trace", [sys.executable, "-m", "tests.fakes.sealed_run", str(root)])
    found: Counter[str] = Counter()
    for operation in operations:
        disk.apply(operation)
        if root / SEAL in disk.names:  # before that, no state has a seal
            for state in disk.states():
                there = _put(state, root, folder / "state" / RUN_NAME)
                found[_sealing(there)] += 1
                shutil.rmtree(there)
    return found


def _put(state: dict[Path, int], origin: Path, there: Path) -> Path:
    """Make the files and folders of a state, with the bytes that the real ones have."""
    there.mkdir(parents=True, mode=0o700)
    for path, size_bytes in sorted(state.items()):
        copy = there / path.relative_to(origin)
        if path.is_dir():
            copy.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            copy.write_bytes(path.read_bytes()[:size_bytes])
    return there


def _consumption(authorization: AuthorizationPaths, *, may_start: bool) -> str:
    packet_id = make_packet().id
    marker = read_marker_state(authorization, packet_id)
    try:
        lines = len(read_ledger(authorization.ledger))
    except BrokenEvidence:
        lines = -1
    if may_start or lines:
        assert isinstance(marker, MarkerValid)
    if may_start:
        assert lines == 1
    try:
        consume(authorization.root)
    except (AlreadyConsumed, BrokenEvidence):
        assert not isinstance(marker, MarkerAbsent)
        return "spent: a second consumption is refused"
    assert isinstance(marker, MarkerAbsent)
    return "not spent: nothing was started"


def _sealing(root: Path) -> str:
    if seal_state(root) is SealState.SEALED:
        open_sealed_run(root)
        return "sealed: every byte is there"
    return "no seal yet: unusable"
