"""Every class that a probe can have, each produced by ranks that really have the fault.

`class_of(folder, name)` freezes a packet whose worker side holds the named fault, consumes it as a user would, and
says what became of it. `FAULTS[name].stage_class` is the class that must come out, `clean` how many ranks ended clean.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.card_repository import make_probe_repository
from tests.fakes.spoiled_packet import freeze_spoiled

RANKS = 2
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
HANG = "time.sleep(600)"
IN_STAGE = """

import signal
import time

_honest = Rank.{method}


def _spoiled(self):
    if self.rank == 1:
        {fault}
    return _honest(self)


Rank.{method} = _spoiled
"""
AFTERWARDS = """

_honest = run_rank


def run_rank(rank):
    status = _honest(rank)
    if rank.rank == 1:
        {fault}
    return status
"""
STAGE_S, TOTAL_S = 8, 60
HANG_S = 16
"""The time of a probe with a rank that hangs: it must be over, and still be enough for everything before."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of rank 1, and the class that it makes."""

    stage_class: str
    appended: str
    """Code behind the pinned module that ranks run."""
    clean: int = 0
    """How many ranks end clean all the same."""
    total_s: int = TOTAL_S
    """The time of the whole probe."""


def _in(method: str, fault: str, stage_class: str, clean: int = 0) -> Fault:
    total_s = HANG_S if fault == HANG else TOTAL_S
    return Fault(stage_class, IN_STAGE.format(method=method, fault=fault), clean, total_s)


def _afterwards(fault: str, stage_class: str, clean: int = 0) -> Fault:
    return Fault(stage_class, AFTERWARDS.format(fault=fault), clean)


def _another(name: str, value: str) -> str:
    """A rank that takes something else for its order."""
    return f"object.__setattr__(self.order, {name!r}, {value})"


FAULTS = {
    "torch cannot be imported": _in("import_torch", "sys.modules['torch'] = None", "harness_or_import_failure"),
    "the card is of a vendor that is not there": _in(
        "set_device", _another("vendor", "'nvidia'"), "device_setup_failure"
    ),
    "a rank is killed before the group is there": _in("initialise_group", KILL, "process_group_init_failure"),
    "memory cannot be had": _in("allocate", _another("elements", "1 << 50"), "tensor_setup_failure"),
    "a rank hangs before the collective": _in("start", HANG, "pre_collective_failure"),
    "a rank is killed in the collective": _in("reduce", KILL, "collective_stage_failure"),
    "a rank hangs in the collective": _in("reduce", HANG, "collective_stage_failure"),
    "a rank brings something else": _in("start", "self.tensor += 1", "verification_failure"),
    "a rank is killed in the teardown": _in("tear_down", KILL, "teardown_failure", 1),
    "a rank hangs in the teardown": _in("tear_down", HANG, "teardown_failure", 1),
    "a rank ends badly after all": _afterwards("return 3", "process_exit_failure", 1),
    "a rank is killed after all": _afterwards("os.kill(os.getpid(), 9)", "process_exit_failure", 1),
    "a rank's record is missing": _afterwards("(rank.order.leg_folder / 'rank-1.jsonl').unlink()", "harness_failure"),
    "a rank's record is cut": _afterwards(
        "os.truncate(rank.order.leg_folder / 'rank-1.jsonl', 700)", "harness_failure"
    ),
    "a process outlives its rank": _afterwards("os.system('setsid sleep 600 &')", "process_exit_failure", RANKS),
    "nothing": Fault("pass", "\n", RANKS),
}


@dataclass(frozen=True, slots=True)
class Classified:
    """What became of a probe."""

    stage_class: str
    exit_status: int
    state: str
    clean: int
    """How many ranks ended clean."""


def class_of(folder: Path, name: str) -> Classified:
    """Run a probe with one fault, and give its class."""
    fault = FAULTS[name]
    repository = make_probe_repository(folder, RANKS)
    repository.say(timeouts={"stage_s": STAGE_S, "total_s": fault.total_s})
    packet = freeze_spoiled(repository, "probe.py", fault.appended)
    answer = repository.labctl("consume-and-run", packet, "--json")
    if not answer.stdout:
        raise RuntimeError(answer.stderr)
    verdict = json.loads(answer.stdout)
    state = repository.status()[0]["state"]
    return Classified(verdict["verdict"], answer.returncode, state, verdict["probe"]["clean_teardowns"])
