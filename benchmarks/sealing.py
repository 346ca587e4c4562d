"""What sealing costs beside `openssl dgst -sha256` and `sync` of the same files, alternating in one run.

`python benchmarks/sealing.py [--mib 1024] [--files 200] [--rounds 3] [--folder DIR]`

Each measurement gets freshly written files, so that both sides have the same bytes still to put on disk. openssl hashes
all files in one process, then `sync` puts these files on disk; one core means that both sides are pinned to one CPU.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from labctl.records.run import NOTHING_SHA256, ClosedRun
from labctl.seal.write import seal_run
from tests.fakes.sealed_run import RUN_NAME, write_run

BLOCK_BYTES = 1 << 20


def fresh_run(folder: Path, mib: int, files: int) -> ClosedRun:
    run = write_run(folder / RUN_NAME)
    block = os.urandom(BLOCK_BYTES)
    size_bytes = mib * BLOCK_BYTES // files
    wire = run.paths.leg(1, "A1")
    for row in range(2, files + 2):
        path = wire.wire_bytes(row)
        with path.open("wb", buffering=0) as stream:
            stream.write(row.to_bytes(8, "big"))
            left = size_bytes - 8
            while left:
                left -= stream.write(block[: min(left, BLOCK_BYTES)])
    return run


def seal_s(run: ClosedRun) -> float:
    started = time.perf_counter()
    seal_run(run, NOTHING_SHA256)
    return time.perf_counter() - started


def openssl_s(run: ClosedRun) -> float:
    paths = [str(path) for path in run.paths.data.rglob("*") if path.is_file()]
    started = time.perf_counter()
    subprocess.run(["openssl", "dgst", "-sha256", *paths], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["sync", *paths], check=True)
    return time.perf_counter() - started


def measure(cores: int, arguments: argparse.Namespace) -> None:
    os.sched_setaffinity(0, sorted(ALL_CPUS)[:cores])
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(arguments.rounds):
        for into, act in ((ours, seal_s), (theirs, openssl_s)):
            folder = Path(tempfile.mkdtemp(dir=arguments.folder))
            into.append(act(fresh_run(folder, arguments.mib, arguments.files)))
            shutil.rmtree(folder)
            os.sync()
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    print(f"{cores} core(s): seal {statistics.median(ours):.2f} s (min {min(ours):.2f}), ", end="")
    print(f"openssl + sync {statistics.median(theirs):.2f} s (min {min(theirs):.2f}), ", end="")
    print(f"ratios {' '.join(f'{ratio:.2f}' for ratio in ratios)}, of medians ", end="")
    print(f"{statistics.median(ours) / statistics.median(theirs):.2f}")


ALL_CPUS = os.sched_getaffinity(0)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="where to write; the system's temporary folder")
    given = parser.parse_args()
    for number in sorted({1, min(2, len(ALL_CPUS))}):
        measure(number, given)
