"""Consuming a packet in a test: in this process, or by `python -m tests.fakes.consuming AUTHORIZATION_ROOT [RACERS]`.

The child prints its exit status and `won` or the problem, and exits as labctl would; with a number, that many forks of
it start at one moment.
"""

import os
import sys
from pathlib import Path

from labctl.clock import SystemClock
from labctl.errors import LabctlError
from labctl.marker import ConsumedPacket, ConsumeRequest, consume_marker
from labctl.packet.model import Packet
from labctl.packet.review import ReviewedPacket
from labctl.records.marker import PreflightPassed
from labctl.rundir import AuthorizationPaths
from tests.fakes.packets import make_packet
from tests.fakes.sealed_run import DEAD_HOST, RUN_NAME


def consume(root: Path, packet: Packet | None = None, run_dir: str = RUN_NAME) -> ConsumedPacket:
    """Consume the packet that lies under an authorization root."""
    packet = packet or make_packet()
    authorization = AuthorizationPaths(root)
    reviewed = ReviewedPacket(packet, packet.id, authorization.packet(packet.id), ("e" * 64,))
    preflight = PreflightPassed(
        packet_sha256=packet.id, findings=(), file_systems={"runs": "ext4"}, rehearsal_seal_sha256=None
    )
    request = ConsumeRequest(authorization, root, run_dir, "0f" * 16, DEAD_HOST, SystemClock())
    return consume_marker(reviewed, preflight, request)


def attempt(root: Path) -> int:
    """Consume the packet; one line on stdout, and the exit status."""
    try:
        consume(root)
    except LabctlError as error:
        os.write(1, f"{error.exit_code} {error}\n".encode())
        return error.exit_code
    os.write(1, b"0 won\n")
    return 0


def race(root: Path, racers: int) -> None:
    """Let forks of this process wait at one pipe and consume when it closes."""
    read_end, write_end = os.pipe()
    for _ in range(racers):
        if os.fork() == 0:
            os.close(write_end)
            os.read(read_end, 1)
            os._exit(attempt(root))
    os.close(write_end)
    for _ in range(racers):
        os.wait()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        race(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        sys.exit(attempt(Path(sys.argv[1])))
