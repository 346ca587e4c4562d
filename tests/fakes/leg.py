"""A leg process on a scripted server: makes a work order in a folder, starts `labctl.leg`, and holds its lifeline.

```
place = LegPlace.new(tmp_path)                       # folders, port, names
order = place.order("--die-in-row", "2")             # a work order for tests/fakes/server.py with misbehaviours
with RunningLeg.start(place, order) as leg:          # a real process; the lifeline beats once a second
    leg.await_event("row")                           # wait for a progress line
    ...leg.guard_pid, leg.worker_pid, leg.cut_lifeline(), leg.signal(signal.SIGTERM)
    status = leg.wait()
place.exit(), place.postflight(), place.process()    # what it wrote
place.assert_nothing_left()                          # no process of the start, no listener, no scratch folder
```
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from labctl.digest import sha256_file
from labctl.engines.reference import VOCABULARY
from labctl.engines.vocabulary import EngineVocabulary
from labctl.frozen import FrozenModel
from labctl.host.boot import boot_id, machine_id_sha256
from labctl.host.processes import identity_of
from labctl.prereg.model import Api, Arm
from labctl.prereg.suite import Prompt
from labctl.records.leg import LegExit, Postflight, ProcessRecord
from labctl.records.order import LegStarted, Limits, Requests, StartPaths, WorkOrder
from labctl.rundir import LegPaths

FAKE_SERVER = Path(__file__).with_name("server.py")
NONCE = "0123456789abcdef0123456789abcdef"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LABCTL_TEST_VALUE": "seen"}
WAIT_S = 30.0


@dataclass(frozen=True)
class LegPlace:
    """The folders of one leg below a test's folder."""

    root: Path
    port: int

    @classmethod
    def new(cls, root: Path) -> Self:
        """New folders, and a port that was free a moment ago."""
        place = cls(root, free_port())
        for folder in ("run", "scratch", "scratch/cache", "scratch/tmp", "scratch/home", "scratch/cwd"):
            (root / folder).mkdir()
        return place

    @property
    def files(self) -> LegPaths:
        """The leg's folder."""
        return LegPaths(self.root / "run")

    @property
    def scratch(self) -> Path:
        """The start's own folder."""
        return self.root / "scratch"

    def order(self, *misbehaviour: str, **changes: object) -> WorkOrder:
        """A work order for the scripted server; `changes` replace fields, `limits` only those that it names."""
        name = f"labctl-{NONCE}"
        server = (sys.executable, "-I", "-P", str(FAKE_SERVER), "--port", str(self.port), "--served-model-name", name)
        fields: dict[str, object] = self._fields() | {"argv": server + misbehaviour} | changes
        limits = {"ready_timeout_s": 10, "stop_timeout_s": 3, "silence_s": 5, "log_limit_bytes": 1 << 20}
        limits |= {"request_timeout_s": 20, "response_limit_bytes": 1 << 20}
        fields["limits"] = Limits.model_validate(limits | dict(changes.get("limits", {})))  # type: ignore[call-overload] # tests give a mapping
        return WorkOrder.model_validate(fields)

    def exit(self) -> LegExit:
        """How the leg ended."""
        return LegExit.from_json(self.files.exit.read_bytes(), "exit.json")

    def postflight(self) -> Postflight:
        """What was left."""
        return Postflight.from_json(self.files.postflight.read_bytes(), "postflight.json")

    def process(self) -> ProcessRecord:
        """What ran."""
        return ProcessRecord.from_json(self.files.process.read_bytes(), "process.json")

    def assert_closed(self) -> None:
        """The leg's manifest names every file with its digest, and nothing else."""
        lines = [line.partition("  ") for line in self.files.manifest.read_text().splitlines()]
        listed = {path: digest for digest, _, path in lines}
        paths = [path for path in self.files.root.rglob("*") if path.is_file() and path != self.files.manifest]
        assert listed == {path.relative_to(self.files.root).as_posix(): sha256_file(path)[0] for path in paths}

    def assert_nothing_left(self) -> None:
        """No process runs from the start's folders, nobody listens, and the scratch folder is gone."""
        assert not self.servers()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", self.port))
        assert not self.scratch.exists()

    def servers(self) -> list[int]:
        """Running processes whose command line holds the port of this place: server, children, orphans."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and identity_of(int(entry.name)):
                with contextlib.suppress(OSError):
                    argv = (entry / "cmdline").read_bytes().split(b"\0")
                    if str(self.port).encode() in argv and str(FAKE_SERVER).encode() in argv:
                        found.append(int(entry.name))
        return found

    def _fields(self) -> dict[str, Any]:
        scratch = self.scratch
        return {
            "kind": "endpoint",
            "packet_kind": "rehearsal",
            "packet_sha256": "0" * 64,
            "marker_sha256": "1" * 64,
            "index": 1,
            "leg": "A1",
            "arm": Arm.CONTROL,
            "machine_id_sha256": machine_id_sha256(),
            "boot_id": boot_id(),
            "nonce": NONCE,
            "address": "127.0.0.1",
            "port": self.port,
            "environment": ENVIRONMENT,
            "paths": StartPaths(
                leg=str(self.files.root),
                scratch=str(scratch),
                cache=str(scratch / "cache"),
                temporary=str(scratch / "tmp"),
                home=str(scratch / "home"),
                working=str(scratch / "cwd"),
            ),
            "requests": Requests(
                api=Api.COMPLETIONS,
                prompts=tuple(Prompt(id=f"p{number}", text="Once upon") for number in (1, 2, 3)),
                max_tokens=4,
                seed=1,
                ignore_eos=False,
            ),
            "engine": EngineVocabulary.model_validate(VOCABULARY.model_dump()),
        }


class RunningLeg:
    """A started `labctl.leg`."""

    def __init__(self, place: LegPlace, process: "subprocess.Popen[bytes]") -> None:
        self._place = place
        self._process = process
        self._is_cut = threading.Event()
        self._beat = threading.Thread(target=self._keep_alive)
        self._beat.start()
        self.events: list[dict[str, object]] = []

    @classmethod
    @contextmanager
    def start(cls, place: LegPlace, order: FrozenModel, environment: dict[str, str] | None = None) -> Iterator[Self]:
        """Write the order where there is none, and run the leg until the block ends."""
        if not place.files.order.exists():
            place.files.order.write_bytes(order.canonical())
        process = subprocess.Popen(
            [sys.executable, "-I", "-P", "-m", "labctl.leg", str(place.files.order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ) if environment is None else environment,
            start_new_session=True,
        )
        leg = cls(place, process)
        try:
            yield leg
        finally:
            leg.cut_lifeline()
            leg.wait()
            for stream in (process.stdout, process.stderr):
                stream_of(stream).close()

    @property
    def guard_pid(self) -> int:
        """The process that the controller would know."""
        return self._process.pid

    @property
    def worker_pid(self) -> int:
        """The process that starts the server."""
        return LegStarted.from_json(self._place.files.started.read_bytes(), "LEG_STARTED.json").pid

    def await_event(self, name: str) -> dict[str, object]:
        """The next progress line with this event."""
        for line in stream_of(self._process.stdout):
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == name:
                return self.events[-1]
        message = f"no {name} among {self.events}; standard error: {self.errors()}"
        raise AssertionError(message)

    def cut_lifeline(self) -> None:
        """Close the leg's standard input."""
        if not self._is_cut.is_set():
            self._is_cut.set()
            self._beat.join()
            with contextlib.suppress(BrokenPipeError):
                stream_of(self._process.stdin).close()

    def fall_silent(self) -> None:
        """Keep the lifeline open and write nothing more."""
        self._is_cut.set()
        self._beat.join()

    def close_silent_lifeline(self) -> None:
        """Close what `fall_silent` left open."""
        with contextlib.suppress(BrokenPipeError):
            stream_of(self._process.stdin).close()

    def signal(self, number: signal.Signals) -> None:
        """Signal the process that the controller would know."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit status; the lifeline stays as it is."""
        return self._process.wait(WAIT_S)

    def errors(self) -> str:
        """What it wrote to standard error; call it once, after its end."""
        return stream_of(self._process.stderr).read().decode()

    def _keep_alive(self) -> None:
        while not self._is_cut.is_set() and self._process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                stream_of(self._process.stdin).write(b".")
                stream_of(self._process.stdin).flush()
            self._is_cut.wait(1.0)


def run(place: LegPlace, *misbehaviour: str, **changes: object) -> tuple[int, str]:
    """Run a leg to its end: its exit status, and what it wrote to standard error."""
    with RunningLeg.start(place, place.order(*misbehaviour, **changes)) as leg:
        return leg.wait(), leg.errors()


def codes_of(problems: tuple[str, ...]) -> list[str]:
    """The codes at the ends of recorded problem lines."""
    return [line[line.rindex("[") + 1 : -1] for line in problems]


def stream_of(stream: IO[bytes] | None) -> IO[bytes]:
    """A pipe that is there."""
    assert stream is not None
    return stream


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_gone(pids: list[int], within_s: float) -> None:
    """Wait until none of these processes runs."""
    deadline_s = time.monotonic() + within_s
    while any(identity_of(pid) for pid in pids):
        assert time.monotonic() < deadline_s, f"{[pid for pid in pids if identity_of(pid)]} still run"
        time.sleep(0.02)
