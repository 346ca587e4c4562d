"""Writes a new component or a new probe: a commented campaign, and for a component a worker that passes as it is."""

from enum import StrEnum
from pathlib import Path

from labctl.durable import make_folders, write_once
from labctl.prereg.skeleton import first_host, new_campaign_place, self_interpreter

_COMPONENT = """\
# yaml-language-server: $schema=../../schemas/component.schema.json
labctl: 1
kind: component
id: {id}
title: One line that says what this campaign is
author: Your Name <you@example.org> # cannot review
question: Does the candidate give the control's bits?
class: exploratory # exploratory | record
host: {host}
interpreter: {interpreter} # a key of the host profile: a Python with torch
cards: {{vendor: cpu, count: 1, identities: discover}} # cpu | nvidia | intel; one leg a card
worker: {{file: {id}/worker.py, timeout_s: 600}}
arms: [plain] # variants of the data; in each, every row compares control and candidate on the same fresh input
cases:
  - {{name: w1, values: {{width: 1}}}}
  - {{name: w8, values: {{width: 8}}}}
repeats: 2
seed: 1
dimensions: {{hidden: 256}}
buffers: # what the candidate keeps from call to call; extents are integers, dimensions and products of these
  - {{name: pair, shape: [2, width, hidden], dtype: bfloat16}}
boundaries: # what is compared bit by bit; shape, stride and offset are derived from here
  - {{name: doubled, of: pair, select: {{dim: 0, index: 0}}}}
  - {{name: squared, of: pair, select: {{dim: 0, index: 1}}}}
gates:
  - {{kind: rows_exact}}
  - {{kind: layouts}}
  - {{kind: pointers}}
  - {{kind: devices}}
reviews: {{required: 0, signatures: none}}
authorizes: [component_run] # once, and nothing else
excluded: [endpoint_run, submission, retry]
"""

_WORKER = '''\
"""The control allocates in every call; the candidate keeps one tensor for each width."""

import torch

from labctl.component.worker import Worker

BF16 = torch.bfloat16


def inputs(draw, sizes):
    """Fresh inputs of one row, from the row's own seed."""
    return {"rows": draw.uniform("rows", (sizes["width"], sizes["hidden"]), BF16)}


class Control:
    def __init__(self, setup):
        self.device = setup.device

    def __call__(self, call):
        rows = call.inputs["rows"]
        pair = torch.stack((rows * 2, rows * rows))
        call.at("doubled", pair[0])
        call.at("squared", pair[1])


class Candidate:
    def __init__(self, setup):
        self.device = setup.device
        self.pairs = {}

    def owned(self, sizes):
        """The tensors that it keeps, by the names of the declared buffers."""
        return {"pair": self.pairs[sizes["width"]]} if sizes["width"] in self.pairs else {}

    def __call__(self, call):
        rows, width = call.inputs["rows"], call.sizes["width"]
        if width not in self.pairs:
            self.pairs[width] = torch.empty((2, *rows.shape), dtype=BF16, device=self.device)
        pair = self.pairs[width]
        torch.mul(rows, 2, out=pair[0])
        torch.mul(rows, rows, out=pair[1])
        call.at("doubled", pair[0])
        call.at("squared", pair[1])


worker = Worker(inputs=inputs, control=Control, candidate=Candidate)
'''

_PROBE = """\
# yaml-language-server: $schema=../../schemas/probe.schema.json
labctl: 1
kind: probe
id: {id}
title: One all-reduce over the cards
author: Your Name <you@example.org> # cannot review
question: How far does a collective come on this machine?
class: exploratory # exploratory | record
host: {host}
interpreter: {interpreter} # a key of the host profile: a Python with torch
cards: {{vendor: cpu, count: 2, identities: discover}} # cpu | nvidia | intel
ranks: 2 # one process a card
backend: gloo # gloo | nccl | xccl
collective: {{operation: all_reduce, dtype: float32, elements: 1048576, expected: sum_of_ranks}}
timeouts: {{stage_s: 60, total_s: 180}} # what still runs after total_s is killed
environment: {{GLOO_SOCKET_IFNAME: lo}}
reviews: {{required: 0, signatures: none}}
authorizes: [probe_run] # once, and nothing else
excluded: [endpoint_run, submission, retry]
"""


class CardKind(StrEnum):
    """Campaigns that start no server."""

    COMPONENT = "component"
    PROBE = "probe"


def write_card_skeleton(folder: Path, kind: CardKind) -> list[Path]:
    """Write a component or a probe into a folder below the campaigns root; gives what it wrote.

    Raises:
        Refused: see `write_skeleton`.
        InvalidPreregistration: the host profile that is there already is wrong.
    """
    campaign, root = new_campaign_place(folder)
    host, is_new_host = first_host(root)
    text = _COMPONENT if kind is CardKind.COMPONENT else _PROBE
    filled = text.format(id=folder.absolute().name, host=f"hosts/{host.name}", interpreter=self_interpreter(host))
    make_folders(folder)
    write_once(campaign, filled.encode())
    worker = folder / "worker.py"
    if kind is CardKind.COMPONENT:
        write_once(worker, _WORKER.encode())
    return [*[host] * is_new_host, campaign, *[worker] * (kind is CardKind.COMPONENT)]
