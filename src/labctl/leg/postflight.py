"""Running an endpoint leg: the stop, and the proof that nothing of the start is left."""

import os
import shutil
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.durable import write_once
from labctl.errors import Problem
from labctl.host.process_facts import shared_segments, still_there
from labctl.leg.device_memory import Baseline, device_memory_left, used_device_memory
from labctl.leg.reserve import Reserve
from labctl.records.leg import Postflight
from labctl.records.order import WorkOrder
from labctl.rundir import LegPaths
from labctl.servers.process import ServerProcess
from labctl.servers.sockets import listeners


def end_server(
    order: WorkOrder, server: ServerProcess, baseline: Baseline, reserve: Reserve, clock: Clock
) -> tuple[Problem, ...]:
    """Stop the server, write `postflight.json`, remove the start's scratch folder, and say what is left.

    Raises:
        BrokenEvidence: the record could not be written.
    """
    leg = LegPaths(Path(order.paths.leg))
    ours = {*baseline.segments, *shared_segments(server.family())}
    stopped = server.stop(order.limits.stop_timeout_s, clock)
    reserve.release()  # nobody is left who could fill it: the records of the end get the room
    problems = _closed_log(server, leg)
    postflight = Postflight(
        stop_signal_mono_ns=stopped.stop_signal_mono_ns,
        ended_mono_ns=stopped.ended_mono_ns,
        exit_status=stopped.exit_status,
        killed=stopped.killed,
        processes_left=stopped.left,
        listeners_left=listeners(order.port, server.family()),
        shared_memory_left=still_there(ours),
        device_memory=device_memory_left(baseline.device_memory, used_device_memory(order)),
        log_bytes=server.log.kept_bytes,
        log_sha256=server.log.sha256,
    )
    write_once(leg.postflight, postflight.canonical())
    return (*problems, *_left(postflight, order), *_scratch_left(Path(order.paths.scratch)))


def _closed_log(server: ServerProcess, leg: LegPaths) -> tuple[Problem, ...]:
    try:
        server.log.close()
    except OSError as error:
        got = os.strerror(error.errno or 0)
        do = "look at the disk; what was written stays as it is"
        return (Problem(Code.WRITE_FAILED, str(leg.server_log), "the server's log on disk", got, do),)
    return ()


def _left(postflight: Postflight, order: WorkOrder) -> tuple[Problem, ...]:
    found = (
        ("processes", ", ".join(map(str, postflight.processes_left))),
        (f"port {order.port}", ", ".join(one.address for one in postflight.listeners_left)),
        ("shared memory", ", ".join(postflight.shared_memory_left)),
    )
    do = "end or remove it by hand before the next run"
    return tuple(Problem(Code.LEFTOVER, what, "nothing after the stop", got, do) for what, got in found if got)


def _scratch_left(scratch: Path) -> tuple[Problem, ...]:
    try:
        shutil.rmtree(scratch)
    except OSError as error:
        got = f"{error.filename}: {os.strerror(error.errno or 0)}"
        return (Problem(Code.LEFTOVER, str(scratch), "a folder that can be removed", got, "remove it by hand"),)
    return ()
