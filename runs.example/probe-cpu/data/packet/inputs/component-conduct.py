"""The worker's sequence: weights, rows, microcases, a pause in which the leg looks at the process, the end."""

import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from labctl.component.bench import Bench
from labctl.component.cards import device_seen, versions
from labctl.component.closing import Closing
from labctl.component.microcases import run_microcase
from labctl.component.order import Case, Order
from labctl.component.rows import open_row, run_row
from labctl.component.worker import Worker


def conduct(order: Order, closing: Closing) -> None:
    """Run everything that the order registers; each row is recorded before the next one begins."""
    closing.imported()
    worker = load_worker(order.code / "worker.py")
    closing.loaded()
    closing.tell(versions=versions(), device=device_seen(order.device))
    gc.disable()  # no collection in the middle of a row
    with torch.no_grad():
        bench = _prepare(order, worker, closing)
        _run_rows(bench, closing)
        _run_microcases(bench, closing)
        closing.stage = "closing"
        with closing.watch:
            closing.tell(weights_after=bench.weight_records(), owned=bench.owned_records())
        pause()


def load_worker(path: Path) -> Worker:
    """Execute a worker file, and give what it declares."""
    spec = importlib.util.spec_from_file_location("component_worker", path)
    if spec is None or spec.loader is None:
        message = f"{path} is no Python file"
        raise RuntimeError(message)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    declared = getattr(module, "worker", None)
    if not isinstance(declared, Worker):
        message = f"{path.name} declares no `worker = Worker(...)`"
        raise TypeError(message)
    return declared


def pause() -> None:
    """Stop until the leg has looked at this process from outside; every tensor is still where the records say."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _prepare(order: Order, worker: Worker, closing: Closing) -> Bench:
    closing.stage = "checkpoint"
    bench = Bench(order, worker, closing.watch)
    slots = worker.slots
    closing.tell(
        weights_before=list(bench.drawn_weights),
        caches=list(bench.drawn_caches),
        cache_layout={"slots_input": slots.input, "slot_dim": slots.dim} if slots else None,
    )
    return bench


def _run_rows(bench: Bench, closing: Closing) -> None:
    closing.stage = "row"
    planned = list(_planned(bench.order))
    for number, (arm, case, repeat) in enumerate(planned, start=1):
        row = run_row(bench, open_row(bench, number, arm, case, repeat))
        with bench.watch:
            closing.append_row(row)
            sys.stdout.write(f"row {number}/{len(planned)} {arm} {case.name} repeat {repeat}\n")


def _planned(order: Order) -> Iterator[tuple[str, Case, int]]:
    repeats = range(1, order.work["repeats"] + 1)
    return ((arm, case, repeat) for arm in order.arms for case in order.cases for repeat in repeats)


def _run_microcases(bench: Bench, closing: Closing) -> None:
    closing.stage = "microcase"
    records: list[dict[str, object]] = []
    closing.tell(microcases=records)
    for microcase in bench.order.microcases:
        records.append(run_microcase(bench, microcase, closing.rows + 1 + len(records)))
        sys.stdout.write(f"microcase {microcase.name}\n")
