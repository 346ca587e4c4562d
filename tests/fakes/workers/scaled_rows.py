"""Scales rows by the weights of each layer: new tensors in every call, against tensors kept for each width."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from labctl.component.worker import Call, Draw, Setup, Sizes, Slots, Worker

BF16 = torch.bfloat16
SLOTS = 8
WIDEST = 3


def weights(draw: Draw, sizes: Sizes) -> dict[str, Tensor]:
    return {"scale": draw.uniform("scale", (sizes["layers"], 1, sizes["hidden"]), BF16)}


def inputs(draw: Draw, sizes: Sizes) -> dict[str, Tensor]:
    rows = draw.uniform("rows", (sizes["width"], sizes["hidden"]), BF16)
    return {"rows": rows, "slots": draw.distinct("slots", sizes["width"], SLOTS)}


def caches(draw: Draw, sizes: Sizes) -> dict[str, Tensor]:
    shape = (2, SLOTS, sizes["hidden"])
    return {f"cache{layer}": draw.uniform(f"cache{layer}", shape, BF16) for layer in range(sizes["layers"])}


class Fresh:
    def __init__(self, setup: Setup) -> None:
        self.scale = setup.weights["scale"]
        self.shift = 2 if setup.arm == "shifted" else 1

    def __call__(self, call: Call) -> None:
        scaled = call.inputs["rows"] * self.scale
        self.finish(call, torch.stack((scaled, scaled + self.shift)))

    def finish(self, call: Call, pair: Tensor) -> None:
        call.at("scaled", pair[0])
        call.at("moved", pair[1])
        pair[1].mul_(2)
        call.at("doubled", pair[1])
        for layer, cache in enumerate(call.caches):
            cache[:, call.inputs["slots"]] = pair[:, layer]


class Kept:
    def __init__(self, setup: Setup) -> None:
        self.fresh = Fresh(setup)
        self.device = setup.device
        self.pairs: dict[int, Tensor] = {}

    def owned(self, sizes: Sizes) -> Mapping[str, Tensor]:
        return {"pair": self.pairs[sizes["width"]]} if sizes["width"] in self.pairs else {}

    def __call__(self, call: Call) -> None:
        layers, width, hidden = (call.sizes[name] for name in ("layers", "width", "hidden"))
        if width > WIDEST:
            self.fresh(call)
            return
        tracer: Any = torch.jit
        if tracer.is_tracing() if self.device.type == "cpu" else torch.cuda.is_current_stream_capturing():
            message = "kept tensors cannot be captured"
            raise RuntimeError(message)
        if width not in self.pairs:
            self.pairs[width] = torch.empty((2, layers, width, hidden), dtype=BF16, device=self.device)
        pair = self.pairs[width]
        torch.mul(call.inputs["rows"], self.fresh.scale, out=pair[0])
        torch.add(pair[0], self.fresh.shift, out=pair[1])
        self.fresh.finish(call, pair)


worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Kept
)
