"""While a run goes on: the host is still what it was when the run was opened."""

from pathlib import Path

from labctl.codes import Code
from labctl.durable import read_regular
from labctl.errors import Problem, RunFailed
from labctl.host.boot import SYSTEM
from labctl.host.identity import read_host_identity
from labctl.records.run import HostIdentity
from labctl.rundir import RunPaths

STEADY = (
    "machine_id_sha256",
    "boot_id",
    "kernel",
    "cpu_model",
    "cpu_count",
    "cpuinfo_sha256",
    "clocksource",
    "governors",
)
LIMIT_BYTES = 1 << 20


def require_same_host(paths: RunPaths, system: Path = SYSTEM) -> None:
    """Hold the host against `host/identity.json`: a moved machine, another clock source or governor ends the run.

    Raises:
        RunFailed: with everything that is different now (WRONG_MACHINE).
        BrokenEvidence: the record does not read back.
    """
    path = paths.host / "identity.json"
    opened, now = (
        HostIdentity.from_json(read_regular(path, limit_bytes=LIMIT_BYTES), str(path)),
        read_host_identity(system),
    )
    pairs = [(name, getattr(opened, name), getattr(now, name)) for name in STEADY]
    do = "keep the host as it is while a campaign runs; the starts cannot be compared"
    problems = [
        Problem(Code.WRONG_MACHINE, f"host {name}", f"{before} as before the first leg", str(found), do)
        for name, before, found in pairs
        if before != found
    ]
    if problems:
        raise RunFailed(problems)
