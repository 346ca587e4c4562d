"""A rank of the standard library alone: `plain_rank.py ORDER [MISBEHAVIOUR...] RANK`.

It writes one line into `rank-R.jsonl`, its environment and CPUs into its log, and ends with exit status 0. One rank can

    --hang RANK        sleep for ever, ignoring SIGTERM
    --exit RANK        end with exit status 3
    --leave RANK       end with exit status 0, and leave a process in a session of its own
    --talk RANK        print a mebibyte, then sleep for ever
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(order_path: str, misbehaviour: list[str], rank: str) -> int:
    """Write the line, and misbehave as told."""
    order = json.loads(Path(order_path).read_text("utf-8"))
    (Path(order["paths"]["leg"]) / f"rank-{rank}.jsonl").write_text(json.dumps({"rank": int(rank)}) + "\n")
    sys.stdout.write(json.dumps({"environment": dict(os.environ), "cpus": sorted(os.sched_getaffinity(0))}) + "\n")
    if misbehaviour[1:] != [rank]:
        return 0
    if misbehaviour[0] == "--exit":
        return 3
    if misbehaviour[0] == "--leave":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        return 0
    if misbehaviour[0] == "--talk":
        sys.stdout.write("x" * (1 << 20))
        sys.stdout.flush()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:-1], sys.argv[-1]))
