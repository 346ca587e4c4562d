"""Real worker processes: an export and an order as a leg makes them, and the pause answered from outside."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.load import load_any_preregistration
from labctl.records.component import ComponentRecord, PreImport
from labctl.records.component_row import RowRecord, read_rows

PACKAGE = Path(__file__).parents[2] / "src" / "labctl"
NONCE = "00112233445566778899aabbccddeeff"
LIMIT_S = 120
WORK = {
    "checkpoint", "arms", "cases", "repeats", "seed", "dimensions", "buffers", "boundaries", "caches", "microcases",
}  # fmt: skip


@dataclass(frozen=True)
class WorkerRun:
    """What a worker process left."""

    leg: Path
    exit_status: int
    paused: bool
    log: str
    maps: str

    @property
    def component(self) -> ComponentRecord:
        """`component.json`, verified in form."""
        data = (self.leg / "component.json").read_bytes()
        record = ComponentRecord.from_json(data, "component.json")
        assert record.canonical() == data
        return record

    @property
    def rows(self) -> tuple[RowRecord, ...]:
        """`rows.jsonl`, verified in form."""
        return read_rows((self.leg / "rows.jsonl").read_bytes(), "rows.jsonl")

    @property
    def pre_import(self) -> PreImport:
        """`pre-import.json`, verified in form."""
        data = (self.leg / "pre-import.json").read_bytes()
        record = PreImport.from_json(data, "pre-import.json")
        assert record.canonical() == data
        return record


def export_modules(folder: Path) -> Path:
    """The exported folder, without a worker."""
    code = folder / "code"
    (code / "labctl" / "component").mkdir(parents=True)
    (code / "files").mkdir()
    (code / "labctl" / "__init__.py").touch()
    for module in (PACKAGE / "component").glob("*.py"):
        shutil.copy(module, code / "labctl" / "component" / module.name)
    return code


def export(folder: Path, worker: Path, files: tuple[Path, ...] = ()) -> Path:
    """The folder that a leg would start the worker from."""
    code = export_modules(folder)
    for path in files:
        shutil.copy(path, code / "files" / path.name)
    shutil.copy(worker, code / "worker.py")
    return code


def write_order(leg: Path, code: Path, work: dict[str, Any]) -> Path:
    """A component leg's order, as far as the worker reads it."""
    leg.mkdir()
    (leg / "discovery.json").write_bytes(canonical_json({"cards": []}))
    document = {
        "schema": "labctl/component-order/1",
        "kind": "component",
        "leg": "card0",
        "nonce": NONCE,
        "packet_sha256": sha256_hex(b"packet"),
        "marker_sha256": sha256_hex(b"marker"),
        "paths": {"leg": str(leg)},
        "code": str(code),
        "card": {"vendor": "cpu"},
        "card_index": 0,
        "work": work,
    }
    path = leg / "order.json"
    path.write_bytes(canonical_json(document))
    return path


def run_worker(
    folder: Path,
    worker: Path,
    work: dict[str, Any],
    files: tuple[Path, ...] = (),
    interpreter: Path = Path(sys.executable),
) -> WorkerRun:
    """Run a worker file to its end; when it stops itself, its map is read and it goes on."""
    code, leg = export(folder, worker, files), folder / "leg"
    order = write_order(leg, code, work)
    program = code / "labctl" / "component" / "run_worker.py"
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [str(interpreter), "-I", "-B", "-u", str(program), str(order)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
            cwd=folder,
        )
        maps = _answer_pause(process.pid)
        status = process.wait(LIMIT_S)
    return WorkerRun(leg, status, maps is not None, (folder / "worker.log").read_text(), maps or "")


class Zygote:
    """Workers without the second that importing torch takes; see `worker_zygote.py`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-u", str(Path(__file__).with_name("worker_zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        )

    def run(self, folder: Path, worker: Path, work: dict[str, Any]) -> WorkerRun:
        """Run a worker file to its end."""
        code, leg, log = export(folder, worker), folder / "leg", folder / "worker.log"
        asked = {"code": str(code), "order": str(write_order(leg, code, work)), "log": str(log)}
        told, heard = self._process.stdin, self._process.stdout
        assert told is not None
        assert heard is not None
        told.write(json.dumps(asked) + "\n")
        told.flush()
        answer = json.loads(heard.readline())
        return WorkerRun(leg, answer["status"], answer["maps"] is not None, log.read_text(), answer["maps"] or "")

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait(LIMIT_S)


def _answer_pause(pid: int) -> str | None:
    seen = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    if seen is None or seen.si_code != os.CLD_STOPPED:
        return None
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    os.kill(pid, signal.SIGCONT)
    return maps


def work_of(campaign: Path) -> dict[str, Any]:
    """The part of a campaign file that a worker reads."""
    loaded = load_any_preregistration(campaign).model
    assert isinstance(loaded, ComponentPreregistration)
    return loaded.model_dump(mode="json", include=WORK)
