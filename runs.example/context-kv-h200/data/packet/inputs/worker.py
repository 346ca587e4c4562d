"""Six-layer context-KV precompute of a draft model: fresh tensors in every call against persistent workspaces.

RMSNorm, one batched product, a bias where there is one, permutation into contiguous K and V, RMSNorm of K, YaRN RoPE in
place, and the write into each layer's paged cache. Both sides do these operations in this order and in bf16.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labctl.component.worker import Call, Draw, Setup, Sizes, Slots, Worker

WIDEST = 8
BF16 = torch.bfloat16
CONSTANTS = json.loads((Path(__file__).parent / "files" / "component.json").read_text(encoding="utf-8"))
Signature = tuple[int, int | torch.SymInt, torch.Size, tuple[int, ...], torch.dtype, torch.device]


def draw_weights(draw: Draw, sizes: Sizes) -> dict[str, Tensor]:
    """The synthetic checkpoint: norms around one, projections whose products stay near one."""
    layers, hidden, kv = sizes["layers"], sizes["hidden"], sizes["kv_heads"] * sizes["head_size"]
    return {
        "hidden_norm": draw.uniform("hidden_norm", (layers, 1, hidden), BF16, exponent=-11, offset=1),
        "kv_proj": draw.uniform("kv_proj", (layers, hidden, 2 * kv), BF16, exponent=-13),
        "kv_bias": draw.uniform("kv_bias", (layers, 1, 2 * kv), BF16, exponent=-10),
        "k_norm": draw.uniform("k_norm", (layers, 1, 1, sizes["head_size"]), BF16, exponent=-11, offset=1),
    }


def draw_inputs(draw: Draw, sizes: Sizes) -> dict[str, Tensor]:
    """Context states of the accepted tokens, where they stand, and the slots that they get."""
    width = sizes["width"]
    return {
        "context_states": draw.uniform("context_states", (width, sizes["hidden"]), BF16, exponent=-7),
        "positions": draw.consecutive("positions", width, CONSTANTS["max_position"] - width),
        "slots": draw.distinct("slots", width, CONSTANTS["blocks"] * CONSTANTS["block_size"]),
    }


def draw_caches(draw: Draw, sizes: Sizes) -> dict[str, Tensor]:
    """One paged cache a layer: K and V, slots, heads."""
    shape = (2, CONSTANTS["blocks"] * CONSTANTS["block_size"], sizes["kv_heads"], sizes["head_size"])
    return {f"cache{layer}": draw.uniform(f"cache{layer}", shape, BF16) for layer in range(sizes["layers"])}


def rms_norm(x: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
    """The norm in float32, rounded to bf16, then weighted in bf16."""
    wide = x.to(torch.float32)
    normal = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + CONSTANTS["rms_norm_epsilon"])).to(BF16)
    return torch.mul(normal, weight, out=out)


def yarn_table(head_size: int, device: torch.device) -> Tensor:
    """Cosines, then sines, of every position; YaRN blends interpolated and plain frequencies."""
    theta, yarn = CONSTANTS["rope_theta"], CONSTANTS["yarn"]
    half = torch.arange(0, head_size, 2, dtype=torch.float64)
    plain = theta ** (-half / head_size)

    def turn(rotations: float) -> float:
        length = yarn["original_max_position"] / (rotations * 2 * math.pi)
        return head_size * math.log(length) / (2 * math.log(theta))

    low, high = max(math.floor(turn(yarn["beta_fast"])), 0), min(math.ceil(turn(yarn["beta_slow"])), head_size - 1)
    kept = 1 - ((torch.arange(head_size // 2, dtype=torch.float64) - low) / max(high - low, 1)).clamp(0, 1)
    frequencies = plain / yarn["factor"] * (1 - kept) + plain * kept
    angles = torch.outer(torch.arange(CONSTANTS["max_position"], dtype=torch.float64), frequencies)
    scale = 0.1 * math.log(yarn["factor"]) + 1
    return (torch.cat((angles.cos(), angles.sin()), dim=-1) * scale).to(BF16).to(device)


def rotate(k: Tensor, positions: Tensor, table: Tensor) -> None:
    """RoPE of `[tokens, heads, head_size]` in place; halves of a head are the two coordinates."""
    cosine, sine = (part.unsqueeze(1) for part in table.index_select(0, positions).chunk(2, dim=-1))
    first, second = k.chunk(2, dim=-1)
    turned = first * cosine - second * sine, second * cosine + first * sine
    first.copy_(turned[0])
    second.copy_(turned[1])


class Allocating:
    """The control: every intermediate tensor is new in every call."""

    def __init__(self, setup: Setup) -> None:
        self.weights = setup.weights
        self.bias = setup.weights["kv_bias"] if setup.arm == "synthetic_bias" else None
        self.table = yarn_table(setup.sizes["head_size"], setup.device)

    def __call__(self, call: Call) -> None:
        """Compute everything once."""
        layers, width, heads, size = (call.sizes[name] for name in ("layers", "width", "kv_heads", "head_size"))
        states = rms_norm(call.inputs["context_states"].repeat(layers, 1, 1), self.weights["hidden_norm"])
        call.at("normalized_states", states)
        projected = torch.bmm(states, self.weights["kv_proj"])
        if self.bias is not None:
            projected = projected + self.bias
        call.at("projected", projected)
        packed = projected.view(layers, width, 2, heads, size).permute(2, 0, 1, 3, 4).contiguous()
        normalized = rms_norm(packed[0], self.weights["k_norm"])
        self.finish(call, packed, normalized)

    def finish(self, call: Call, packed: Tensor, normalized: Tensor) -> None:
        """From K and V to the caches; nothing here allocates for longer than the operation."""
        layers, size = call.sizes["layers"], CONSTANTS["block_size"]
        call.at("projected_k", packed[0])
        call.at("projected_v", packed[1])
        call.at("normalized_k", normalized)
        rotate(normalized.view(-1, *normalized.shape[2:]), call.inputs["positions"].repeat(layers), self.table)
        call.at("rope_k", normalized)
        block, offset = call.inputs["slots"] // size, call.inputs["slots"] % size
        for layer, cache in enumerate(call.caches):
            paged = cache.view(2, -1, size, *cache.shape[2:])
            paged[0, block, offset] = normalized[layer]
            paged[1, block, offset] = packed[1, layer]


@dataclass(frozen=True)
class Workspace:
    """The four tensors of one width, and what they were at first use."""

    states: Tensor
    projected: Tensor
    packed: Tensor
    normalized_k: Tensor

    def named(self) -> dict[str, Tensor]:
        """By the names of the declared buffers."""
        return dict(vars(self))


class Persistent:
    """The candidate: widths 1 to 8 keep exact-width workspaces; a wider call is the control's, literally."""

    def __init__(self, setup: Setup) -> None:
        self.control = Allocating(setup)
        self.device = setup.device
        self.workspaces: dict[int, Workspace] = {}
        self.static = {**setup.weights, "rope": self.control.table}
        self.signatures = {name: signature(tensor) for name, tensor in self.static.items()}

    def owned(self, sizes: Sizes) -> Mapping[str, Tensor]:
        """The workspace of a width, once it is there."""
        workspace = self.workspaces.get(sizes["width"])
        return workspace.named() if workspace else {}

    def __call__(self, call: Call) -> None:
        """Compute everything once."""
        if call.sizes["width"] > WIDEST:
            self.control(call)
            return
        if is_capturing(self.device):
            message = "context-KV workspaces cannot be used while work is being captured"
            raise RuntimeError(message)
        self._compute(call, self._guarded(call))

    def _compute(self, call: Call, own: Workspace) -> None:
        layers, width, heads, size = (call.sizes[name] for name in ("layers", "width", "kv_heads", "head_size"))
        weights, bias = self.control.weights, self.control.bias
        rms_norm(call.inputs["context_states"].repeat(layers, 1, 1), weights["hidden_norm"], own.states)
        call.at("normalized_states", own.states)
        torch.bmm(own.states, weights["kv_proj"], out=own.projected)
        if bias is not None:
            torch.add(own.projected, bias, out=own.projected)
        call.at("projected", own.projected)
        own.packed.copy_(own.projected.view(layers, width, 2, heads, size).permute(2, 0, 1, 3, 4))
        rms_norm(own.packed[0], weights["k_norm"], own.normalized_k)
        self.control.finish(call, own.packed, own.normalized_k)

    def _guarded(self, call: Call) -> Workspace:
        width = call.sizes["width"]
        if width not in self.workspaces:
            self.workspaces[width] = self._new(call.sizes)
            self.signatures.update(self._signed(width))
        for name, now in [*((name, signature(tensor)) for name, tensor in self.static.items()), *self._signed(width)]:
            if now != self.signatures[name]:
                message = f"context-KV workspace drift: {name} is {now}, was {self.signatures[name]}"
                raise RuntimeError(message)
        self._require_disjoint(call)
        return self.workspaces[width]

    def _signed(self, width: int) -> Iterator[tuple[str, Signature]]:
        return ((f"{width}.{name}", signature(tensor)) for name, tensor in self.workspaces[width].named().items())

    def _new(self, sizes: Sizes) -> Workspace:
        layers, width, heads, size = (sizes[name] for name in ("layers", "width", "kv_heads", "head_size"))
        shapes = (
            (layers, width, sizes["hidden"]),
            (layers, width, 2 * heads * size),
            (2, layers, width, heads, size),
            (layers, width, heads, size),
        )
        return Workspace(*(torch.empty(shape, dtype=BF16, device=self.device) for shape in shapes))

    def _require_disjoint(self, call: Call) -> None:
        own = sorted(span(tensor) for space in self.workspaces.values() for tensor in space.named().values())
        others = [span(tensor) for tensor in (*self.static.values(), *call.inputs.values(), *call.caches)]
        among_own = any(later[0] < earlier[1] for earlier, later in pairwise(own))
        if among_own or any(one[0] < other[1] and other[0] < one[1] for one in own for other in others):
            message = "context-KV workspaces overlap each other, a weight, an input or a cache"
            raise RuntimeError(message)


def signature(tensor: Tensor) -> Signature:
    """What must not change about a tensor between calls."""
    return tensor.data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def span(tensor: Tensor) -> tuple[int, int]:
    """The addresses of a tensor's storage."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def is_capturing(device: torch.device) -> bool:
    """Whether a device graph captures now; on CPUs, which have none, whether torch.jit traces."""
    if device.type == "cpu":
        tracer: Any = torch.jit
        return bool(tracer.is_tracing())
    return bool(torch.get_device_module(device).is_current_stream_capturing())


worker = Worker(
    weights=draw_weights,
    inputs=draw_inputs,
    caches=draw_caches,
    slots=Slots("slots", dim=1),
    control=Allocating,
    candidate=Persistent,
)
