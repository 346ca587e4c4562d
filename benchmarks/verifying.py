"""What `seal verify` costs beside `openssl dgst -sha256` of the same files, in turn on one sealed run.

    python -m benchmarks.verifying [--mib 1024] [--files 200] [--rounds 5] [--folder DIR]

The files are in the page cache for both; one core means that both sides are pinned to one CPU.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.sealing import ALL_CPUS, fresh_run
from labctl.records.run import NOTHING_SHA256
from labctl.seal.verify import open_sealed_run
from labctl.seal.write import seal_run


def verify_s(root: Path) -> float:
    """Seconds of one verification."""
    started = time.perf_counter()
    open_sealed_run(root)
    return time.perf_counter() - started


def openssl_s(root: Path) -> float:
    """Seconds of one digest of every payload file, in one process."""
    paths = [str(path) for path in (root / "data").rglob("*") if path.is_file()]
    started = time.perf_counter()
    subprocess.run(["openssl", "dgst", "-sha256", *paths], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    """Seal one run, then verify it and hash it in turn, on one core and on two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="where to write; the system's temporary folder")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    root = seal_run(fresh_run(folder, arguments.mib, arguments.files), NOTHING_SHA256).root
    for cores in sorted({1, min(2, len(ALL_CPUS))}):
        os.sched_setaffinity(0, sorted(ALL_CPUS)[:cores])
        rounds = [(verify_s(root), openssl_s(root)) for _ in range(arguments.rounds)]
        ratios = " ".join(f"{ours / theirs:.2f}" for ours, theirs in rounds)
        ours, theirs = (statistics.median(side) for side in zip(*rounds, strict=True))
        print(f"{cores} core(s): verify {ours:.2f} s, openssl {theirs:.2f} s, ", end="")
        print(f"ratios {ratios}, of medians {ours / theirs:.2f}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
