"""Many processes consume one packet at one moment; exactly one may win."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from labctl.ledger import read_ledger
from labctl.rundir import AuthorizationPaths
from tests.fakes.packets import make_packet, write_packet_folder

TOP = Path(__file__).parents[3]


def prepare_packet(root: Path) -> AuthorizationPaths:
    """An authorization root in which one packet waits."""
    packet = make_packet()
    paths = AuthorizationPaths(root)
    write_packet_folder(paths.packets / packet.id, packet)
    root.chmod(0o700)
    return paths


def race(root: Path, racers: int) -> Counter[str]:
    """How the racers ended: `won`, or the code of their refusal; AssertionError unless the ledger has one line."""
    authorization = prepare_packet(root)
    command = [sys.executable, "-m", "tests.fakes.consuming", str(root), str(racers)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TOP).stdout.splitlines()
    assert len(lines) == racers, lines
    assert len(read_ledger(authorization.ledger)) == 1
    assert len(list(authorization.markers.iterdir())) == 1
    return Counter("won" if line == "0 won" else line.rpartition("[")[2].rstrip("]") for line in lines)
