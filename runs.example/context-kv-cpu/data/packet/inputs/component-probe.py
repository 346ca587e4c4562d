"""One rank of a probe: one bounded collective, and one line for each stage that was reached, in order.

Nothing here retries, recovers or suggests: a rank ends at the first stage that it cannot reach.
"""

import hashlib
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from labctl.component import process_facts
from labctl.component.order import DEVICES
from labctl.component.seal import code_sha256
from labctl.component.writing import Lines

PERIOD = 251
COMPLETED = 0
FAILED = 4
MESSAGE_LIMIT = 2000
Detail = dict[str, Any]


@dataclass(frozen=True)
class ProbeOrder:
    """What a rank reads of its leg's `order.json`."""

    sha256: str
    leg_folder: Path
    code: Path
    nonce: str
    ranks: int
    backend: str
    vendor: str
    dtype: str
    elements: int
    stage_s: int
    address: str
    port: int

    @property
    def device(self) -> str:
        """The rank's card, the only one that it sees."""
        return DEVICES[self.vendor]

    @property
    def shift(self) -> int:
        """Where the pattern of elements starts; the nonce gives it."""
        return int(self.nonce[:16], 16) % PERIOD


def read_probe_order(path: Path) -> ProbeOrder:
    """Read the order of a probe."""
    data = path.read_bytes()
    document = json.loads(data)
    return ProbeOrder(
        sha256=hashlib.sha256(data).hexdigest(),
        leg_folder=Path(document["paths"]["leg"]),
        code=Path(document["code"]),
        nonce=document["nonce"],
        ranks=document["ranks"],
        backend=document["backend"],
        vendor=document["cards"][0]["vendor"],
        dtype=document["collective"]["dtype"],
        elements=document["collective"]["elements"],
        stage_s=document["timeouts"]["stage_s"],
        address=document["address"],
        port=document["port"],
    )


class Rank:
    """The stages of one rank; each does its work and gives what the line says."""

    def __init__(self, order: ProbeOrder, rank: int) -> None:
        self.order = order
        self.rank = rank
        self.torch: Any = None
        self.group: Any = None
        self.tensors: Any = None
        self.tensor: Any = None

    @property
    def stages(self) -> tuple[tuple[str, Callable[[], Detail]], ...]:
        """Every stage, in order."""
        return (
            ("import-done", self.import_torch),
            ("device-set", self.set_device),
            ("pg-initialised", self.initialise_group),
            ("tensor-allocated", self.allocate),
            ("all_reduce-start", self.start),
            ("all_reduce-done", self.reduce),
            ("verified", self.verify),
            ("teardown-done", self.tear_down),
        )

    def import_torch(self) -> Detail:
        """Hash the exported files, then import torch."""
        digests = code_sha256(self.order.code)
        self.torch = importlib.import_module("torch")
        self.group = importlib.import_module("torch.distributed")
        self.tensors = importlib.import_module("labctl.component.tensors")
        return {
            "torch": str(self.torch.__version__),
            "python": process_facts.python_version(),
            "order_sha256": self.order.sha256,
            "code_sha256": digests,
        }

    def set_device(self) -> Detail:
        """Take the only visible card."""
        if self.order.vendor != "cpu":
            self.torch.get_device_module(self.order.device).set_device(0)
        seen = importlib.import_module("labctl.component.cards").device_seen(self.order.device)
        return {name: seen[name] for name in ("device", "visible", "name", "uuid", "cpus")}

    def initialise_group(self) -> Detail:
        """Meet the other ranks; an accelerator's communicator is made now and not in the collective."""
        accelerator = {} if self.order.vendor == "cpu" else {"device_id": self.torch.device(self.order.device)}
        self.group.init_process_group(
            backend=self.order.backend,
            init_method=f"tcp://{self.order.address}:{self.order.port}",
            rank=self.rank,
            world_size=self.order.ranks,
            timeout=timedelta(seconds=self.order.stage_s),
            **accelerator,
        )
        return {
            "backend": str(self.group.get_backend()),
            "world_size": int(self.group.get_world_size()),
            "group_rank": int(self.group.get_rank()),
        }

    def allocate(self) -> Detail:
        """Fill this rank's tensor."""
        self.tensor = self._pattern(self.rank + 1).to(self.order.device)
        return {
            "dtype": self.order.dtype,
            "elements": int(self.tensor.numel()),
            "shift": self.order.shift,
            **self._content(),
        }

    def start(self) -> Detail:
        """The last line before the collective."""
        return {}

    def reduce(self) -> Detail:
        """The one collective."""
        self.group.all_reduce(self.tensor)
        self._wait_for_device()
        return {}

    def verify(self) -> Detail:
        """Hold every element against the sum of all ranks."""
        expected = self._pattern(self.order.ranks * (self.order.ranks + 1) // 2)
        difference = self.tensors.first_difference(expected, self.tensors.on_host(self.tensor))
        if difference is not None:
            message = f"the sum is wrong: {json.dumps(difference, sort_keys=True)}"
            raise RuntimeError(message)
        return self._content()

    def tear_down(self) -> Detail:
        """Leave the group."""
        self.group.destroy_process_group()
        return {}

    def _pattern(self, factor: int) -> Any:  # noqa: ANN401 (a tensor; torch is imported as a stage of its own)
        places = self.torch.arange(self.order.elements, dtype=self.torch.int64)
        values = ((places + self.order.shift) % PERIOD + 1) * factor
        return values.to(getattr(self.torch, self.order.dtype))

    def _content(self) -> Detail:
        digest = self.tensors.content_sha256(self.tensors.on_host(self.tensor))
        return {"sha256": digest, "data_ptr": int(self.tensor.data_ptr())}

    def _wait_for_device(self) -> None:
        if self.order.vendor != "cpu":
            self.torch.get_device_module(self.order.device).synchronize()


class RankLog:
    """`rank-R.jsonl`: a context in which each stage leaves one line, and a failure the last."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._lines = Lines(rank.order.leg_folder / f"rank-{rank.rank}.jsonl")
        self.reaching = ""
        self.exit_status = FAILED

    def __enter__(self) -> "RankLog":
        return self

    def reached(self, stage: str, detail: Detail) -> None:
        """One line."""
        self._lines.append(
            {
                "schema": "labctl/probe-stage/1",
                "rank": self._rank.rank,
                "nonce": self._rank.order.nonce,
                "pid": os.getpid(),
                "stage": stage,
                "detail": detail,
                "wall_ns": time.time_ns(),
                "mono_ns": time.monotonic_ns(),
            }
        )
        sys.stdout.write(f"rank {self._rank.rank}: {stage}\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self.exit_status = COMPLETED
        else:
            traceback.print_exception(kind, error, trace, file=sys.stderr)
            message = str(error)[:MESSAGE_LIMIT]
            self.reached(
                "failed",
                {"reaching": self.reaching, "exception": type(error).__qualname__, "message": message},
            )
        self._lines.settle()
        return True


def run_rank(rank: Rank) -> int:
    """Go through all stages; 0: every one was reached, 4: a line says which was not."""
    with RankLog(rank) as log:
        for stage, reach in rank.stages:
            log.reaching = stage
            log.reached(stage, reach())
    return log.exit_status
