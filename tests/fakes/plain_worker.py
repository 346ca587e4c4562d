"""A worker of the standard library alone, as a leg starts it: `plain_worker.py ORDER [MISBEHAVIOUR...]`.

It writes as many lines as there are rows, pauses once with its memory alive, and ends with exit status 0. It can

    --die NUMBER       end itself with a signal, before the second row
    --fail STATUS      end with an exit status, before the second row
    --hang             sleep for ever, with a child in a session of its own, ignoring SIGTERM
    --leave            leave a process in a session of its own
    --talk BYTES       print so many bytes, then sleep for ever
    --hoard BYTES      take so much memory
    --never-pause      not pause
    --leave-segment    leave a segment of shared memory
    --tell-environment write its environment and CPUs into its log
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(order_path: str, misbehaviour: list[str]) -> int:
    """Write the rows, and misbehave as told."""
    order = json.loads(Path(order_path).read_text("utf-8"))
    asked = dict(zip(misbehaviour, [*misbehaviour[1:], ""], strict=False))
    if "--tell-environment" in asked:
        sys.stdout.write(json.dumps({"environment": dict(os.environ), "cpus": sorted(os.sched_getaffinity(0))}) + "\n")
    work = order["work"]
    count = len(work["arms"]) * len(work["cases"]) * work["repeats"]
    with (Path(order["paths"]["leg"]) / "rows.jsonl").open("w", encoding="utf-8") as rows:
        for row in range(1, count + 1):
            rows.write(json.dumps({"row": row}) + "\n")
            rows.flush()
            if row == 1:
                misbehave(asked)
    if "--never-pause" not in asked:
        os.kill(os.getpid(), signal.SIGSTOP)
    return 0


def misbehave(asked: dict[str, str]) -> None:
    """Do what was asked, between the first row and the second."""
    if "--leave-segment" in asked:
        memory = Path("/dev/shm") / f"labctl-test-{os.getpid()}"
        memory.write_bytes(b"left")
        os.open(memory, os.O_RDONLY)
    if "--leave" in asked:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    if "--hoard" in asked:
        globals()["hoard"] = bytearray(int(asked["--hoard"]))
    if "--die" in asked:
        os.kill(os.getpid(), int(asked["--die"]))
    if "--fail" in asked:
        sys.exit(int(asked["--fail"]))
    if "--talk" in asked:
        sys.stdout.write("x" * int(asked["--talk"]))
        sys.stdout.flush()
        time.sleep(600)
    if "--hang" in asked:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        time.sleep(600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
