"""How long the audit of a server's log takes, and how much memory it needs: a log of 200 MB on disk.

The patterns are those of the engine and four more, one of them with named groups for each rank; their lines are rare,
as in a log that is kept. A process of its own audits the file, so that its peak memory is that of the audit; the same
process with an empty log says what the interpreter and labctl's modules take.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labctl.analyze.log_lines import file_chunks, find_lines
from labctl.engines.vllm import DENY_PATTERNS, UNKNOWN_ENVIRONMENT

MB = 1_000_000
OWN = (
    "not compiled",
    r"RuntimeError|[Ss]egmentation fault",
    r"Worker_TP(?P<rank>[0-9]+).*graphs=(?P<graphs>[0-9]+), eager_breaks=(?P<eager_breaks>[0-9]+)",
    r"Application startup complete\.$",
)
PATTERNS = (*DENY_PATTERNS, UNKNOWN_ENVIRONMENT, *OWN)
COMMON = (
    b"(EngineCore_DP0 pid=4242) INFO 07-26 10:11:12 [loggers.py:248] Engine 000: Avg prompt throughput: 12.3 tokens/s, "
    b"Avg generation throughput: 95.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.4%\r\n"
    b'(APIServer pid=4241) INFO:     127.0.0.1:40000 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    b"(Worker_TP2 pid=4245) DEBUG 07-26 10:11:12 [shm_broadcast.py:501] No available shared memory broadcast block\n"
)
RARE = b"(Worker_TP%d pid=4243) INFO 07-26 10:11:12 [graph.py:1] captured graphs=146, eager_breaks=145\r\n"


def write_log(path: Path, size_bytes: int) -> None:
    """A log of about the size, with a rare line of each rank in its middle and at its end."""
    rare = b"".join(RARE % rank for rank in range(4))
    half = COMMON * (size_bytes // 2 // len(COMMON))
    path.write_bytes(half + rare + half + rare)


def audit(path: Path) -> None:
    """Audit one file, and print the time, the peak memory and what was found."""
    start = time.monotonic_ns()
    found = find_lines(file_chunks(path), PATTERNS)
    took_s = (time.monotonic_ns() - start) / 1e9
    print(f"{took_s:.3f} {peak_mb():.1f} {sum(one.count for one in found.values())}")


def peak_mb() -> float:
    """The peak of this process's resident memory; `getrusage` would give the parent's where that was larger."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / MB


def measured(path: Path) -> tuple[float, float, int]:
    """Seconds, megabytes and matching lines of an audit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.log_audit", "--audit", str(path)]
    words = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout.split()
    return float(words[0]), float(words[1]), int(words[2])


def main() -> None:
    """Measure five times, and print the median."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--audit", type=Path)
    parser.add_argument("--mb", type=int, default=200)
    options = parser.parse_args()
    if options.audit is not None:
        audit(options.audit)
        return
    with tempfile.TemporaryDirectory() as folder:
        empty, log = Path(folder) / "empty.log", Path(folder) / "server.log"
        empty.write_bytes(b"")
        write_log(log, options.mb * MB)
        _, base_mb, _ = measured(empty)
        runs = sorted(measured(log) for _ in range(5))
        took_s, most_mb, lines = runs[2]
        assert lines == 8, lines
        size_mb = log.stat().st_size / MB
    print(f"{size_mb:.0f} MB, {len(PATTERNS)} patterns: {took_s:.2f} s ({runs[0][0]:.2f} to {runs[-1][0]:.2f})")
    print(f"peak memory {most_mb:.0f} MB, of which {base_mb:.0f} MB without a log")


if __name__ == "__main__":
    main()
