"""The pre-import seal: what will run, on disk before torch is imported and before a line of the worker file runs."""

import hashlib
import os
import sys
import time
from pathlib import Path

from labctl.component import process_facts
from labctl.component.order import Order
from labctl.component.writing import canonical, write_once

BLOCK_BYTES = 1 << 20


def write_seal(order: Order) -> str:
    """Write `pre-import.json`, and give its digest."""
    data = canonical(_seal(order))
    write_once(order.leg_folder / "pre-import.json", data)
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """The digest of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def code_sha256(code: Path) -> dict[str, str]:
    """The digest of each exported file, by its role in the packet."""
    modules = {f"component-{path.name}": path for path in (code / "labctl" / "component").glob("*.py")}
    files = {f"file-{path.name}": path for path in (code / "files").glob("*")}
    worker = {path.name: path for path in code.glob("worker.py")}
    return {role: file_sha256(path) for role, path in sorted({**modules, **files, **worker}.items())}


def _seal(order: Order) -> dict[str, object]:
    executable = Path(sys.executable).resolve()
    discovery = order.leg_folder / "discovery.json"
    return {
        "schema": "labctl/pre-import/1",
        "leg": order.leg,
        "nonce": order.nonce,
        "packet_sha256": order.packet_sha256,
        "marker_sha256": order.marker_sha256,
        "order_sha256": order.sha256,
        "discovery_sha256": file_sha256(discovery) if discovery.exists() else None,
        "code_sha256": code_sha256(order.code),
        "argv": list(sys.orig_argv),
        "executable": str(executable),
        "executable_sha256": file_sha256(executable),
        "python": process_facts.python_version(),
        "flags": process_facts.interpreter_flags(),
        "environment": dict(os.environ),
        "working_folder": str(Path.cwd()),
        "modules": process_facts.loaded_modules(),
        "mapped_files": process_facts.mapped_files(),
        "cpus": process_facts.cpus(),
        "pid": os.getpid(),
        "start_ticks": process_facts.start_ticks(),
        "boot_id": process_facts.boot_id(),
        "wall_ns": time.time_ns(),
        "mono_ns": time.monotonic_ns(),
    }
