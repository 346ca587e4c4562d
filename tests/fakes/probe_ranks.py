"""Real ranks of a probe: an export and an order as a leg makes them, one process a rank, without a leg around them."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labctl.frozen import canonical_json
from labctl.records.probe import StageLine, read_rank
from tests.fakes.component_worker import NONCE, export_modules

LIMIT_S = 120


@dataclass(frozen=True)
class ProbeRun:
    """What the ranks left."""

    leg: Path
    statuses: tuple[int, ...]
    logs: tuple[str, ...]

    def lines(self, rank: int) -> tuple[StageLine, ...]:
        """The lines of a rank, verified in form."""
        name = f"rank-{rank}.jsonl"
        return read_rank((self.leg / name).read_bytes(), name)

    def stages(self, rank: int) -> tuple[str, ...]:
        """What a rank reached, in order."""
        return tuple(line.stage for line in self.lines(rank))


def run_ranks(folder: Path, ranks: int = 2, programs: Mapping[int, Path] | None = None, stage_s: int = 15) -> ProbeRun:
    """Run all ranks to their end; a rank may run another program in the place of `run_probe.py`."""
    code, leg = export_modules(folder), folder / "leg"
    order = _write_order(leg, code, ranks, stage_s)
    started = []
    for rank in range(ranks):
        program = code / "labctl" / "component" / "run_probe.py"
        if programs and rank in programs:
            program = program.with_name(f"other_{rank}.py")
            shutil.copy(programs[rank], program)
        with (folder / f"rank-{rank}.log").open("wb") as log:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-I", "-B", "-u", str(program), str(order), str(rank)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
                    cwd=folder,
                )
            )
    statuses = tuple(process.wait(LIMIT_S) for process in started)
    return ProbeRun(leg, statuses, tuple((folder / f"rank-{rank}.log").read_text() for rank in range(ranks)))


def _write_order(leg: Path, code: Path, ranks: int, stage_s: int) -> Path:
    leg.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    document = {
        "schema": "labctl/probe-order/1",
        "kind": "probe",
        "nonce": NONCE,
        "paths": {"leg": str(leg)},
        "code": str(code),
        "ranks": ranks,
        "backend": "gloo",
        "cards": [{"vendor": "cpu"}] * ranks,
        "collective": {"operation": "all_reduce", "dtype": "float32", "elements": 1000, "expected": "sum_of_ranks"},
        "timeouts": {"stage_s": stage_s, "total_s": 60},
        "address": "127.0.0.1",
        "port": port,
    }
    path = leg / "order.json"
    path.write_bytes(canonical_json(document))
    return path
