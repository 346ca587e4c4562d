"""A synthetic component run on two CPU cards, sealed by the real `seal_run`.

```
run = ComponentRun()
run.workers[1].rows[3]["boundaries"][0]["candidate"]["sha256"] = "0" * 64    # what worker 1 wrote
run.edits["legs/02-card1/discovery.json"] = json_edit(...)                   # what the leg or the controller wrote
sealed = run.seal(tmp_path)
```
"""

import json
from dataclasses import dataclass, field

from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from tests.fakes.card_run import (
    EXECUTABLE_SHA256,
    CardRun,
    card_document,
    discovery_document,
    selecting,
    torch_uuid,
)
from tests.fakes.component_records import Doc, WorkerScript, maps, preregistration

INPUTS = {
    "worker.py": b"worker = Worker()\n",
    "component-run_worker.py": b"print()\n",
    "file-tiny.json": b"{}\n",
    "host.yaml": b"labctl: 1\n",
}
CODE = ("worker.py", "component-run_worker.py", "file-tiny.json")


@dataclass
class ComponentRun(CardRun):
    """Two cards, each with its worker."""

    inputs: dict[str, bytes] = field(default_factory=lambda: dict(INPUTS))
    workers: list[WorkerScript] = field(default_factory=lambda: [WorkerScript(0), WorkerScript(1)])
    registered: Doc = field(default_factory=preregistration)

    vendor: str = "cpu"

    def __post_init__(self) -> None:
        if self.vendor != "cpu":
            self.registered["cards"]["vendor"] = self.vendor
            cards = [card_document(index, vendor=self.vendor) for index in range(2)]
            self.devices = discovery_document(cards, {}, self.vendor)
            for worker in self.workers:
                worker.vendor = self.vendor
                worker.component["device"]["uuid"] = torch_uuid(self.vendor, worker.card_index)

    def preregistration(self) -> Doc:
        """What the campaign registers."""
        return self.registered

    def order_document(self, index: int, head: Doc) -> Doc:
        """One card's order."""
        said = self.frozen_packet().preregistration.model_dump(mode="json")
        names = (
            "checkpoint",
            "arms",
            "cases",
            "repeats",
            "seed",
            "dimensions",
            "buffers",
            "boundaries",
            "caches",
            "microcases",
        )
        card = card_document(index - 1, vendor=self.vendor)
        return {
            "schema": "labctl/component-order/1",
            "kind": "component",
            **head,
            "environment": head["environment"] | selecting(card),
            "inputs": {role: digest for role, digest in head["inputs"].items() if role in CODE},
            "argv": [
                *("/opt/python", "-I", "-u", f"{head['code']}/labctl/component/run_worker.py"),
                f"{head['paths']['leg']}/order.json",
            ],
            "card": card,
            "card_index": index - 1,
            "work": {name: said[name] for name in names},
        }

    def leg_files(self, index: int, order_head: Doc) -> dict[str, bytes]:
        """The files of one card's leg."""
        worker, at = self.workers[index - 1], f"legs/{index:02d}-card{index - 1}"
        order = self.order_document(index, order_head)
        order_bytes = canonical_json(order)
        order_sha256 = sha256_hex(self._edited(f"{at}/order.json", order_bytes))
        filters = selecting(card_document(index - 1, vendor=self.vendor)) or {"sched_affinity": str(index - 1)}
        alone = card_document(index - 1, 0, self.vendor)
        discovery = canonical_json(discovery_document([alone], filters, self.vendor))
        discovery_sha256 = sha256_hex(self._edited(f"{at}/discovery.json", discovery))
        self._fill(worker, order, order_sha256, discovery_sha256)
        wrote = worker.files()
        log = self._edited(f"{at}/worker.log", wrote["worker.log"])
        return {
            "order.json": order_bytes,
            "discovery.json": discovery,
            **wrote,
            "maps.txt": maps(),
            "process.json": canonical_json(self._process(worker, order)),
            "postflight.json": canonical_json(self._postflight(worker, index, log)),
        }

    def _fill(self, worker: WorkerScript, order: Doc, order_sha256: str, discovery_sha256: str) -> None:
        """What a worker learns from its order; what a test has set already stays."""
        learnt = {
            "nonce": order["nonce"],
            "packet_sha256": order["packet_sha256"],
            "marker_sha256": order["marker_sha256"],
            "order_sha256": order_sha256,
            "discovery_sha256": discovery_sha256,
            "code_sha256": order["inputs"],
            "argv": order["argv"],
            "environment": order["environment"],
            "executable_sha256": EXECUTABLE_SHA256,
        }
        worker.answer(learnt)

    def _process(self, worker: WorkerScript, order: Doc) -> Doc:
        seen = {
            "pid": 60,
            "parent_pid": 50,
            "start_ticks": 10,
            "executable": "/opt/python",
            "argv": order["argv"],
            "environment": order["environment"],
            "environment_other": [],
        }
        return {
            "schema": "labctl/worker-process/1",
            "started_mono_ns": worker.base_ns + 5,
            "root": seen,
            "observed_mono_ns": worker.base_ns + 15_000,
            "tree": [],
            "cpus": [worker.card_index],
            "pauses": 1,
            "rows_seen": len(worker.rows),
        }

    def _postflight(self, worker: WorkerScript, index: int, log: bytes) -> Doc:
        card = card_document(index - 1, 0, self.vendor)
        return {
            "schema": "labctl/worker-postflight/1",
            "ended_mono_ns": worker.base_ns + 30_000,
            "exit_status": 0,
            "timed_out": False,
            "stopped_by_us": False,
            "killed": [],
            "processes_left": [],
            "shared_memory_left": [],
            "log_bytes": len(log),
            "log_sha256": sha256_hex(log),
            "card": {"before": card, "after": json.loads(json.dumps(card)), "problems": []},
        }
