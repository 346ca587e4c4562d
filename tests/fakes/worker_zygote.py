"""A process that has imported torch and nothing of labctl, and forks a worker for each line that it reads.

Importing torch takes a second each time. What is forked runs the exported code as `run_worker.py` does, with the one
difference that torch is there before the seal; tests of the seal start workers in the ordinary way.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch


def work(code: str, order: str, log: str) -> None:
    """The forked worker; never returns."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv = ["run_worker.py", order]
    sys.path.insert(0, str(Path(code) / "labctl" / "component"))
    program = __import__("run_worker")
    status = program.main([order])
    sys.stdout.flush()
    os._exit(status)


def serve() -> None:
    """Fork for each line, answer the pause, and tell how it ended."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            work(**asked)
        _, status = os.waitpid(pid, os.WUNTRACED)
        maps = None
        if os.WIFSTOPPED(status):
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
            os.kill(pid, signal.SIGCONT)
            _, status = os.waitpid(pid, 0)
        sys.stdout.write(json.dumps({"status": os.waitstatus_to_exitcode(status), "maps": maps}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
