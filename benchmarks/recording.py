"""What hashing and recording cost a component worker, beside the worker's own work, in real worker processes.

`python -m benchmarks.recording [--rounds 5] [--cpus 1]`

Recording is everything that a worker does for labctl: hashing, comparing, restoring caches, writing. The worker's own
work is the rest: weights, inputs, control and candidate. Importing torch is neither, and is told apart.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from tests.fakes.component_worker import run_worker, work_of

CAMPAIGN = Path(__file__).parents[1] / "campaigns" / "context-kv"


def measure(rounds: int) -> None:
    ratios, whole = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            work = work_of(CAMPAIGN / "cpu.yaml")
            run = run_worker(Path(folder), CAMPAIGN / "worker.py", work, (CAMPAIGN / "component.json",))
            assert run.exit_status == 0, run.log
            timing = run.component.timing
        ratios.append(timing.recording_ns / timing.compute_ns)
        whole.append(timing.recording_ns / (timing.compute_ns + timing.import_ns))
        print(
            f"import {timing.import_ns / 1e6:.0f} ms, own work {timing.compute_ns / 1e6:.1f} ms, "
            f"recording {timing.recording_ns / 1e6:.1f} ms: {100 * ratios[-1]:.1f} % of the own work"
        )
    print(
        f"recording / own work: median {statistics.median(ratios):.3f}, min {min(ratios):.3f}; "
        f"recording / (own work + import): median {statistics.median(whole):.3f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpus", type=int, default=1)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cpus])
    measure(given.rounds)
