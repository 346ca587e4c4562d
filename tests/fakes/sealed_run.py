"""A tiny but complete run directory, for tests of sealing: two closed legs with a row each, a journal, an outcome.

`write_run(folder)` makes it (the folder's name is the run's) and returns the closed run; `write_sealed_run(folder)`
seals it as well. The wire rows are arbitrary bytes: nothing here is meant to be judged.

`python -m tests.fakes.sealed_run RUN` seals the run that lies there, and exits as labctl would.
"""

import os
import sys
from pathlib import Path

from labctl.durable import read_regular
from labctl.errors import LabctlError
from labctl.packet.model import Packet
from labctl.protocol import Event
from labctl.records.marker import Marker, MarkerHost
from labctl.records.run import NOTHING_SHA256, ClosedRun, Outcome, OutcomeKind
from labctl.rundir import RunPaths
from labctl.seal.verify import SealedRun
from labctl.seal.write import seal_run
from tests.fakes.packets import ENGINE_JSON, PREREG_YAML, make_packet
from tests.fakes.run_records import WALL_NS, journal_bytes

RUN_NAME = "quick-test-0123456789ab-00112233445566778899aabbccddeeff"
DEAD_HOST = MarkerHost(
    machine_id_sha256="a" * 64,
    boot_id="00000000-0000-0000-0000-000000000000",
    controller_pid=1,
    controller_start_ticks=1,
)
COMPLETED = Outcome(outcome=OutcomeKind.COMPLETED, cause=None, detail=(), legs_closed=("A1", "B1"))
EVENTS: tuple[tuple[Event, str | None], ...] = (
    (Event.PREFLIGHT_RECORDED, None),
    (Event.LEG_STARTED, "A1"),
    (Event.LEG_CLOSED, "A1"),
    (Event.LEG_STARTED, "B1"),
    (Event.LEG_CLOSED, "B1"),
    (Event.RUN_CLOSED, None),
)


def two_leg_packet() -> Packet:
    """The packet of the run."""
    return make_packet(preregistration={"schedule": {"order": ["A1", "B1"], "stop_after_first_pair": False}})


def make_marker(packet: Packet, run_name: str = RUN_NAME, host: MarkerHost = DEAD_HOST) -> Marker:
    """A marker of a packet, by default of a controller that is long dead."""
    return Marker(
        kind=packet.kind,
        packet_sha256=packet.id,
        prereg_sha256=packet.prereg_yaml_sha256,
        git_commit=packet.repository.commit,
        tree_dirhash=packet.repository.tree_dirhash,
        order=packet.order,
        run_dir=run_name,
        nonce="0f" * 16,
        host=host,
        approvals=(),
        file_systems={"runs": "ext4"},
        rehearsal_seal_sha256=None,
        wall_ns=WALL_NS,
        mono_ns=5,
    )


def write_run(folder: Path, host: MarkerHost = DEAD_HOST) -> ClosedRun:
    """A closed run in a folder that is made here."""
    paths = RunPaths(folder)
    packet = two_leg_packet()
    files = {
        paths.packet / "packet.json": packet.canonical(),
        paths.packet / "prereg.yaml": PREREG_YAML,
        paths.packet / "engine.json": ENGINE_JSON,
        paths.packet / "marker.copy.json": make_marker(packet, folder.name, host).canonical(),
        paths.host / "env.json": b"{}\n",
        paths.journal: journal_bytes(EVENTS),
        paths.outcome: COMPLETED.canonical(),
    }
    for index, name in enumerate(packet.order, start=1):
        leg = paths.leg(index, name)
        files |= {leg.order: b"{}\n", leg.server_log: b"ready\n", leg.wire_bytes(1): os.urandom(300), leg.log: b""}
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return ClosedRun(paths, COMPLETED)


def write_sealed_run(folder: Path) -> SealedRun:
    """A sealed run in a folder that is made here."""
    return seal_run(write_run(folder), NOTHING_SHA256)


def seal_as_process(folder: Path) -> int:
    """Seal the run in a folder; its problems on stdout, and the exit status."""
    paths = RunPaths(folder)
    try:
        outcome = Outcome.from_json(read_regular(paths.outcome, limit_bytes=1 << 20), "outcome")
        seal_run(ClosedRun(paths, outcome), NOTHING_SHA256)
    except LabctlError as error:
        sys.stdout.write(f"{error}\n")
        return error.exit_code
    return 0


def spoil(path: Path, data: bytes) -> None:
    """Put other bytes into a sealed file, which an owner can do at any time."""
    path.chmod(0o600)
    path.write_bytes(data)


if __name__ == "__main__":
    sys.exit(seal_as_process(Path(sys.argv[1])))
