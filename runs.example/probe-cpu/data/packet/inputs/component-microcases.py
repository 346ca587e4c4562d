"""Microcases: a call that must be refused under capture, and a size at which the candidate must stay inert."""

import torch
from torch import Tensor

from labctl.component.bench import Bench
from labctl.component.capture import Capture
from labctl.component.order import Microcase
from labctl.component.rows import OpenRow, open_row, run_row
from labctl.component.tensors import Record, place_records
from labctl.component.worker import Call

OPERAND = 41
OPERAND_BOUND = 1_000_003


def run_microcase(bench: Bench, microcase: Microcase, number: int) -> Record:
    """Run one microcase, and give its record."""
    case = microcase.case.__class__(microcase.name, microcase.case.sizes)
    opened = open_row(bench, number, microcase.arm, case, 1)
    return _must_raise(bench, microcase, opened) if microcase.kind == "must_raise" else _must_stay_inert(bench, opened)


def _must_raise(bench: Bench, microcase: Microcase, opened: OpenRow) -> Record:
    call = Call(opened.case.sizes, opened.inputs, bench.candidate_caches, _unrecorded)
    replay_operand = int(bench.order.nonce[:8], 16) % OPERAND_BOUND
    capture = Capture(torch.device(bench.order.device), (OPERAND, replay_operand))
    before = bench.state(opened.arm, opened.inputs)
    seen = capture.run(lambda: bench.arms[opened.arm].candidate(call))
    return {
        "kind": "must_raise",
        "name": microcase.name,
        "arm": microcase.arm,
        "case": microcase.case.name,
        "row": opened.number,
        "row_seed": opened.seed,
        "inputs": opened.draw.drawn,
        **seen,
        "state_before": before,
        "state_after": bench.state(opened.arm, opened.inputs),
    }


def _must_stay_inert(bench: Bench, opened: OpenRow) -> Record:
    before = bench.state(opened.arm, opened.inputs)
    row = run_row(bench, opened)
    return {
        "kind": "must_stay_inert",
        "name": opened.case.name,
        "owned": place_records(bench.owned(opened.arm, opened.case)),
        "state_before": before,
        "state_after": bench.state(opened.arm, opened.inputs),
        "row": row,
    }


def _unrecorded(_name: str, _tensor: Tensor) -> None:
    """Recording copies to the host, which no device lets happen while it captures."""
