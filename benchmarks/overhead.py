"""What the controller costs: the wall time of a campaign that is nobody's but labctl's.

Runs a campaign, by default the quickstart, from a fresh clone and subtracts from its wall time everything that belongs
to the server or to a registered step: server starts and stops, generation, the idle window, sealing and analysis. What
is left is preflight, marker, processes, records and the gaps between rows.

    python -m benchmarks.overhead [--campaign FILE --serving DIR] [--json]
"""

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.roots import Roots
from labctl.clock import SystemClock
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.machine import packet_folder
from labctl.pipeline import Done, Job, consume_and_run
from labctl.records.leg import Postflight, ProcessRecord
from labctl.records.wire import read_wire_row

REPOSITORY = Path(__file__).parents[1]
CAMPAIGN = Path("campaigns/quickstart/campaign.yaml")
SHARE_LIMIT = 0.02
SECONDS_LIMIT = 3.0


@dataclass(frozen=True, slots=True)
class Step:
    """An announcement and when it came."""

    text: str
    at_s: float


def main() -> None:
    """Run once and print where the time went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaign", type=Path, default=CAMPAIGN, help="a committed campaign file of this repository")
    parser.add_argument("--serving", type=Path, help="a serving environment, for campaigns on a real engine")
    parser.add_argument("--json", action="store_true", help="machine output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="labctl-overhead-") as folder:
        clone = Path(folder) / "labctl"
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(REPOSITORY), str(clone)], check=True)
        if arguments.serving:
            (clone / ".labctl").mkdir(mode=0o700)
            (clone / ".labctl" / "serving").symlink_to(arguments.serving.resolve())
        parts = measure(clone, arguments.campaign)
    parts["allowed"] = max(SHARE_LIMIT * parts["wall"], SECONDS_LIMIT)
    if arguments.json:
        print(json.dumps(parts, indent=2))
        return
    for name, seconds in parts.items():
        print(f"{name:12} {seconds:8.2f} s  {100 * seconds / parts['wall']:5.1f} %")


def measure(clone: Path, campaign: Path) -> dict[str, float]:
    """Seconds by what they were spent on."""
    packet = freeze_packet(FreezeRequest(clone / campaign))
    steps: list[Step] = []

    def announce(text: str) -> None:
        steps.append(Step(text, time.monotonic()))

    begin_s = time.monotonic()
    job = Job(packet_folder(packet, clone), Roots.of_packet(packet, clone), SystemClock(), announce, lambda _: None)
    done = consume_and_run(job)
    end_s = time.monotonic()
    parts = {"wall": end_s - begin_s, **server_seconds(done)}
    parts["idle window"] = float(packet.host.idle.window_s)
    parts["sealing"] = between(steps, "sealing", end_s)
    parts["analysis"] = between(steps, "the analyzers", end_s)
    parts["overhead"] = parts["wall"] - sum(seconds for name, seconds in parts.items() if name != "wall")
    return parts


def between(steps: list[Step], prefix: str, end_s: float) -> float:
    """Seconds from each announcement with a prefix to the one after it."""
    following = [*[step.at_s for step in steps[1:]], end_s]
    return sum(after - step.at_s for step, after in zip(steps, following, strict=True) if step.text.startswith(prefix))


def server_seconds(done: Done) -> dict[str, float]:
    """Seconds of server start, generation and stop, from the sealed records."""
    found = {"start": 0, "generation": 0, "stop": 0}
    for name in done.sealed.names():
        data = done.sealed.read(name)
        if name.endswith("/process.json"):
            readiness = ProcessRecord.from_json(data, name).readiness
            found["start"] += readiness.ready_mono_ns - readiness.process_started_mono_ns
        elif name.endswith("/postflight.json"):
            postflight = Postflight.from_json(data, name)
            found["stop"] += postflight.ended_mono_ns - postflight.stop_signal_mono_ns
        elif name.endswith(".reads.jsonl"):
            row = read_wire_row(data, done.sealed.read(name.replace(".reads.jsonl", ".bin")), name)
            found["generation"] += row.closed.mono_ns - row.connect_started.mono_ns
    return {part: nanoseconds / 1e9 for part, nanoseconds in found.items()}


if __name__ == "__main__":
    main()
