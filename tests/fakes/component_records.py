"""Synthetic records of one component worker: what a faithful worker would write, made without torch.

```
script = WorkerScript(card_index=1)
script.rows[3]["boundaries"][0]["candidate"]["sha256"] = "0" * 64     # spoil one thing
script.component["weights_after"][0]["sha256"] = "0" * 64
```

Tensors have content where a reader could rebuild it (drawn inputs, weights, caches and their written slots); what a
boundary holds is bytes that follow from the row and the boundary's name. Digests that speak of other documents
(`rows_sha256`, `pre_import_sha256`) are filled in by `files()`, after everything was spoiled.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from labctl.component.stream import consecutive_integers, distinct_integers, uniform_bytes
from labctl.digest import sha256_hex
from labctl.frozen import canonical_json

Doc = dict[str, Any]

MARKER_NONCE = "0f" * 16
LAYERS, HIDDEN, HEADS, HEAD_SIZE, SLOTS = 2, 8, 2, 4, 32
WIDTHS = {"w1": 1, "w3": 3}
ARMS = ("no_bias", "synthetic_bias")
REPEATS = 2
WIDE = 9
SEED, CHECKPOINT_SEED = 7, 20260725
MESSAGE = "no capture of persistent workspaces"
DEVICE = "cpu"
HEAP = 0x7F00_0000_0000
BOUNDARIES = ("normalized_states", "projected_k", "projected_v", "rope_k")


def preregistration() -> Doc:
    """What the synthetic campaign registers."""
    return {
        "labctl": 1,
        "kind": "component",
        "id": "quick-component",
        "title": "Persistent workspaces",
        "author": "Lab One <lab@example.org>",
        "question": "Are persistent workspaces equal to fresh allocations?",
        "class": "exploratory",
        "host": "hosts/bench.yaml",
        "interpreter": "serving",
        "sources": [],
        "cards": {"vendor": "cpu", "count": 2, "identities": "discover"},
        "worker": {"file": "workers/tiny.py", "timeout_s": 600},
        "files": ["workers/tiny.json"],
        "checkpoint": {"name": "tiny", "seed": CHECKPOINT_SEED, "sha256": checkpoint_sha256()},
        "arms": list(ARMS),
        "cases": [{"name": name, "values": {"width": width}} for name, width in WIDTHS.items()],
        "repeats": REPEATS,
        "seed": SEED,
        "dimensions": {"layers": LAYERS, "hidden": HIDDEN, "kv_heads": HEADS, "head_size": HEAD_SIZE},
        "buffers": _buffers(),
        "boundaries": _boundaries(),
        "caches": {"count": "layers", "name": "cache"},
        "microcases": _registered_microcases(),
        "gates": [
            {"kind": kind}
            for kind in ("rows_exact", "layouts", "pointers", "weights_unchanged", "microcases", "devices")
        ],
        "reviews": {"required": 0, "signatures": "none"},
        "authorizes": ["component_run"],
        "excluded": ["endpoint_run", "submission", "retry"],
    }


def _buffers() -> list[Doc]:
    return [
        {"name": "states", "shape": ["layers", "width", "hidden"], "dtype": "bfloat16"},
        {"name": "packed", "shape": [2, "layers", "width", "kv_heads", "head_size"], "dtype": "bfloat16"},
    ]


def _boundaries() -> list[Doc]:
    return [
        {"name": "normalized_states", "of": "states"},
        {"name": "projected_k", "of": "packed", "select": {"dim": 0, "index": 0}},
        {"name": "projected_v", "of": "packed", "select": {"dim": 0, "index": 1}},
        {"name": "rope_k", "of": "packed", "select": {"dim": 0, "index": 0}},
    ]


def _registered_microcases() -> list[Doc]:
    return [
        {
            "kind": "must_raise",
            "name": "capture_rejected",
            "exception": "RuntimeError",
            "message": MESSAGE,
            "arm": "no_bias",
            "case": "w3",
        },
        {"kind": "must_stay_inert", "name": "wide", "values": {"width": WIDE}, "arm": "no_bias"},
    ]


def row_seed(card_index: int, arm: str, case: str, repeat: int) -> int:
    """The seed of one row."""
    text = f"{SEED}/{card_index}/{arm}/{case}/{repeat}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") & (1 << 63) - 1


def place(name: str, shape: Iterable[int], address: int, dtype: str = "bfloat16") -> Doc:
    """A contiguous tensor that owns its storage."""
    sizes = list(shape)
    size_bytes = prod(sizes) * {"bfloat16": 2, "int64": 8}[dtype]
    return {
        "name": name,
        "shape": sizes,
        "stride": [prod(sizes[axis + 1 :]) for axis in range(len(sizes))],
        "dtype": dtype,
        "device": DEVICE,
        "storage_offset": 0,
        "data_ptr": address,
        "storage_ptr": address,
        "storage_bytes": size_bytes,
    }


def tensor(at: Doc, data: bytes) -> Doc:
    """A tensor at a place."""
    return {**at, "bytes": len(data), "sha256": sha256_hex(data)}


def uniform(name: str, seed: int, shape: tuple[int, ...], address: int) -> tuple[Doc, bytes]:
    """A drawn tensor of bfloat16, and its bytes."""
    data = uniform_bytes(f"{seed}/{name}", prod(shape), "bfloat16", -8, 0)
    draw = {"kind": "uniform", "exponent": -8, "offset": 0}
    return {"draw": draw, "stream": f"{seed}/{name}", "tensor": tensor(place(name, shape, address), data)}, data


def integers(name: str, seed: int, draw: Doc, numbers: list[int], address: int) -> Doc:
    """A drawn tensor of integers."""
    data = b"".join(number.to_bytes(8, "little") for number in numbers)
    at = place(name, (len(numbers),), address, "int64")
    return {"draw": draw, "stream": f"{seed}/{name}", "tensor": tensor(at, data)}


def weights() -> list[Doc]:
    """Every weight, drawn."""
    shapes = {"norm": (LAYERS, HIDDEN), "projection": (LAYERS, HIDDEN, 2 * HEADS * HEAD_SIZE)}
    return [
        uniform(name, CHECKPOINT_SEED, shape, HEAP + 0x1000 * number)[0]
        for number, (name, shape) in enumerate(sorted(shapes.items()))
    ]


def checkpoint_sha256() -> str:
    """The pinned digest of the weights."""
    lines = [f"{one['tensor']['sha256']}  {one['tensor']['name']}\n" for one in weights()]
    return sha256_hex("".join(lines).encode())


def view(owner: Doc, name: str, index: int) -> Doc:
    """The view of one index along dimension 0."""
    offset = index * owner["stride"][0]
    return {
        **owner,
        "name": name,
        "shape": owner["shape"][1:],
        "stride": owner["stride"][1:],
        "storage_offset": offset,
        "data_ptr": owner["storage_ptr"] + 2 * offset,
    }


TORCH = {"cpu": ("cpu", "jit_trace"), "nvidia": ("cuda:0", "cuda_graph"), "intel": ("xpu:0", "xpu_graph")}
"""How torch names a vendor's only visible card, and what captures on it."""


@dataclass
class WorkerScript:
    """The documents of one worker, each free to be spoiled before `files()`."""

    card_index: int = 0
    vendor: str = "cpu"
    rows: list[Doc] = field(default_factory=list)
    component: Doc = field(default_factory=dict)
    pre_import: Doc = field(default_factory=dict)
    log: bytes = b""

    def __post_init__(self) -> None:
        self.base_ns = (self.card_index + 1) * 1_000_000_000_000
        self.caches = [
            uniform(f"cache{layer}", CHECKPOINT_SEED, (2, SLOTS, HEADS, HEAD_SIZE), HEAP + 0x10_0000 + 0x1000 * layer)
            for layer in range(LAYERS)
        ]
        triples = [(arm, case, repeat + 1) for arm in ARMS for case in WIDTHS for repeat in range(REPEATS)]
        self.rows = [self.row(number, *triple) for number, triple in enumerate(triples, start=1)]
        self.pre_import = self._pre_import()
        self.component = self._component()

    @property
    def nonce(self) -> str:
        """The leg's nonce, which follows from the marker's."""
        return sha256_hex(f"{MARKER_NONCE}:{self.leg}".encode())[:32]

    @property
    def leg(self) -> str:
        """The leg's name."""
        return f"card{self.card_index}"

    def row(self, number: int, arm: str, case: str, repeat: int) -> Doc:
        """One row, control and candidate equal."""
        width = WIDTHS.get(case, WIDE)
        seed = row_seed(self.card_index, arm, case, repeat)
        states, _ = uniform("states_in", seed, (width, HIDDEN), HEAP + 0x30_0000)
        slots = distinct_integers(f"{seed}/slots", width, SLOTS)
        positions = consecutive_integers(f"{seed}/positions", width, 4096)
        inputs = [
            states,
            integers("positions", seed, {"kind": "consecutive", "below": 4096}, positions, HEAP + 0x31_0000),
            integers("slots", seed, {"kind": "distinct", "below": SLOTS}, slots, HEAP + 0x32_0000),
        ]
        own = self.buffers(arm, case)
        return {
            "schema": "labctl/component-row/1",
            "row": number,
            "arm": arm,
            "case": case,
            "repeat": repeat,
            "row_seed": seed,
            "inputs": inputs,
            "boundaries": self._boundaries(number, (arm, case), seed, own),
            "caches": [self._cache(number, seed, slots, layer) for layer in range(LAYERS)],
            "buffers": own if case in WIDTHS else [],
            "sample": self._sample(number, seed, width),
            "inputs_after": [one["tensor"]["sha256"] for one in inputs],
            "started_mono_ns": self.base_ns + number * 1000,
            "ended_mono_ns": self.base_ns + number * 1000 + 500,
        }

    def buffers(self, arm: str, case: str) -> list[Doc]:
        """The candidate's own tensors for one case of one arm, by name."""
        width = WIDTHS.get(case, WIDE)
        number = ARMS.index(arm) * 8 + [*WIDTHS, "wide"].index(case)
        address = HEAP + 0x40_0000 + number * 0x1_0000
        return [
            place("packed", (2, LAYERS, width, HEADS, HEAD_SIZE), address),
            place("states", (LAYERS, width, HIDDEN), address + 0x8000),
        ]

    def _boundaries(self, number: int, where: tuple[str, str], seed: int, own: list[Doc]) -> list[Doc]:
        width = WIDTHS.get(where[1], WIDE)
        apart = 0x50_0000
        control = [{**one, **_moved(one, apart)} for one in own]
        if where[1] not in WIDTHS:  # the candidate takes the control's path: both allocate
            own = [{**one, **_moved(one, 2 * apart)} for one in own]
        records = []
        for name in BOUNDARIES:
            data = _content(f"{seed}/{name}", LAYERS * width * HIDDEN * 2)
            sides = [_boundary_place(name, side) for side in (control, own)]
            records.append(
                {
                    "name": name,
                    "control": tensor(sides[0], data),
                    "candidate": tensor(sides[1], data),
                    "challenge_sha256": sha256_hex(data + f"/{self.nonce}/{number}".encode()),
                    "first_difference": None,
                }
            )
        return records

    def _cache(self, number: int, seed: int, slots: list[int], layer: int) -> Doc:
        drawn, before = self.caches[layer]
        whole = _written(before, slots, self._written_slots(seed, len(slots), layer))
        at = drawn["tensor"]
        return {
            "name": f"cache{layer}",
            "index": layer,
            "control": tensor({**_without_digest(at), **_moved(at, 0x8_0000)}, whole),
            "candidate": tensor(_without_digest(at), whole),
            "challenge_sha256": sha256_hex(whole + f"/{self.nonce}/{number}".encode()),
            "first_difference": None,
            "rest_sha256": sha256_hex(before),
        }

    def _written_slots(self, seed: int, width: int, layer: int) -> bytes:
        return _content(f"{seed}/written{layer}", width * 2 * HEADS * HEAD_SIZE * 2)

    def _sample(self, number: int, seed: int, width: int) -> Doc | None:
        layer = self.sampled_cache(number)
        data = self._written_slots(seed, width, layer)
        return {"cache": layer, "base64": base64.b64encode(data).decode()} if len(data) <= 2048 else None

    def sampled_cache(self, row: int) -> int:
        """Which cache the sample of a row is of."""
        return int.from_bytes(hashlib.sha256(f"{self.nonce}/{row}".encode()).digest()[:8], "big") % LAYERS

    def _state(self, arm: str) -> Doc:
        own = [
            tensor(
                {**one, "name": f"{case}.{one['name']}"}, _content(f"{arm}/{case}/{one['name']}", one["storage_bytes"])
            )
            for case in WIDTHS
            for one in self.buffers(arm, case)
        ]
        return {
            "buffers": sorted(own, key=lambda one: str(one["name"])),
            "caches": [dict(drawn["tensor"]) for drawn, _ in self.caches],
            "inputs": [],
        }

    def _microcases(self) -> list[Doc]:
        seed = row_seed(self.card_index, "no_bias", "capture_rejected", 1)
        states, _ = uniform("states_in", seed, (WIDTHS["w3"], HIDDEN), HEAP + 0x30_0000)
        state = {**self._state("no_bias"), "inputs": [states["tensor"]]}
        operand = int(self.nonce[:8], 16) % 1_000_003
        refused = {
            "kind": "must_raise",
            "name": "capture_rejected",
            "arm": "no_bias",
            "case": "w3",
            "row": 9,
            "row_seed": seed,
            "inputs": [states],
            "condition": "jit_trace",
            "before": {"asked": False, "state": False},
            "during": {"asked": True, "state": True},
            "after": {"asked": False, "state": False},
            "exception": "RuntimeError",
            "message": MESSAGE,
            "canary": {"operand": 41, "captured": 42, "replay_operand": operand, "replayed": operand + 1},
            "state_before": state,
            "state_after": json.loads(json.dumps(state)),
        }
        row = self.row(10, "no_bias", "wide", 1)
        wide = {**self._state("no_bias"), "inputs": [one["tensor"] for one in row["inputs"]]}
        inert = {
            "kind": "must_stay_inert",
            "name": "wide",
            "owned": [],
            "state_before": wide,
            "state_after": {**json.loads(json.dumps(wide)), "caches": [one["candidate"] for one in row["caches"]]},
            "row": row,
        }
        return [refused, inert]

    def _pre_import(self) -> Doc:
        return {
            "schema": "labctl/pre-import/1",
            "leg": self.leg,
            "nonce": self.nonce,
            "packet_sha256": "1" * 64,
            "marker_sha256": "2" * 64,
            "order_sha256": "3" * 64,
            "discovery_sha256": "4" * 64,
            "code_sha256": {},
            "argv": ["/opt/python", "-I", "run_worker.py", "order.json"],
            "executable": "/opt/python",
            "executable_sha256": "5" * 64,
            "python": "CPython 3.11.9",
            "flags": {"isolated": 1},
            "environment": {},
            "working_folder": "/scratch/cwd",
            "modules": ["builtins", "sys"],
            "mapped_files": ["/usr/lib/libc.so.6"],
            "cpus": [self.card_index],
            "pid": 60,
            "start_ticks": 10,
            "boot_id": "11111111-2222-3333-4444-555555555555",
            "wall_ns": 1,
            "mono_ns": self.base_ns + 10,
        }

    def _component(self) -> Doc:
        opened = {"target": "/runs/worker.log", "device": 1, "inode": 2}
        channels = {
            "warning_filters": ["default:None:Warning:None:0"],
            "shows_warnings": "labctl.component.warning_log.WarningLog.show",
            "stdout": opened,
            "stderr": opened,
        }
        drawn = weights()
        return {
            "schema": "labctl/component/1",
            "leg": self.leg,
            "order_sha256": "3" * 64,
            "pre_import_sha256": "0" * 64,
            "rows_sha256": "0" * 64,
            "rows": len(self.rows),
            "pid": 60,
            "versions": {"python": "CPython 3.11.9", "torch": "2.13.0+cpu", "torch_git": "abc", "accelerator": None},
            "device": {
                "device": DEVICE,
                "visible": 1,
                "name": "cpu",
                "uuid": None,
                "memory_bytes": None,
                "cpus": [self.card_index],
                "threads": 1,
            },
            "weights_before": drawn,
            "weights_after": [json.loads(json.dumps(one["tensor"])) for one in drawn],
            "caches": [one for one, _ in self.caches],
            "cache_layout": {"slots_input": "slots", "slot_dim": 1},
            "owned": [self._owned(arm, case) for arm in ARMS for case in WIDTHS],
            "microcases": self._microcases(),
            "warnings": [],
            "channels_before": channels,
            "channels_after": json.loads(json.dumps(channels)),
            "timing": {"import_ns": 1, "compute_ns": 2, "recording_ns": 3},
            "started_mono_ns": self.base_ns + 20,
            "ended_mono_ns": self.base_ns + 20_000,
            "ending": {"kind": "completed"},
        }

    def _owned(self, arm: str, case: str) -> Doc:
        buffers = [
            tensor(one, _content(f"{arm}/{case}/{one['name']}", one["storage_bytes"]))
            for one in self.buffers(arm, case)
        ]
        return {"arm": arm, "case": case, "buffers": buffers}

    def answer(self, learnt: Doc) -> None:
        """Take what the order says; what a test has set otherwise stays."""
        fresh = WorkerScript.__new__(WorkerScript)
        fresh.card_index, fresh.base_ns = self.card_index, self.base_ns
        untouched = fresh._pre_import()
        for name, value in learnt.items():
            if self.pre_import.get(name) == untouched[name]:
                self.pre_import[name] = value
        if self.component["order_sha256"] == "3" * 64:
            self.component["order_sha256"] = learnt["order_sha256"]

    def files(self) -> dict[str, bytes]:
        """The worker's files, their links filled in."""
        rows = b"".join(map(self._on_card, self.rows))
        sealed = canonical_json(self.pre_import)
        links = {"pre_import_sha256": sha256_hex(sealed), "rows_sha256": sha256_hex(rows), "rows": len(self.rows)}
        filled = {name: value for name, value in links.items() if self.component.get(name) in ("0" * 64, 8)}
        document = {**self.component, **filled}
        return {
            "pre-import.json": sealed,
            "rows.jsonl": rows,
            "component.json": self._on_card(document),
            "worker.log": self.log,
        }

    def _on_card(self, document: Doc) -> bytes:
        device, condition = (f'"{name}"'.encode() for name in TORCH[self.vendor])
        data = canonical_json(document).replace(b'"device":"cpu"', b'"device":' + device)
        return data.replace(b'"condition":"jit_trace"', b'"condition":' + condition)


def maps() -> bytes:
    """What a guard would see mapped into the worker."""
    return (
        b"00400000-00500000 r-xp 00000000 08:01 11 /opt/python\n"
        b"7f0000000000-7f0002000000 rw-p 00000000 00:00 0 \n"
        b"7f1000000000-7f1000100000 r-xp 00000000 08:01 12 /opt/lib/libtorch_cpu.so\n"
    )


def _boundary_place(name: str, side: list[Doc]) -> Doc:
    packed, states = side
    if name == "normalized_states":
        return {**states, "name": name}
    return view(packed, name, 1 if name == "projected_v" else 0)


def _moved(at: Doc, by: int) -> Doc:
    return {"data_ptr": at["data_ptr"] + by, "storage_ptr": at["storage_ptr"] + by}


def _without_digest(at: Doc) -> Doc:
    return {name: value for name, value in at.items() if name not in ("bytes", "sha256")}


def _content(name: str, size_bytes: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(size_bytes)


def _written(before: bytes, slots: list[int], raw: bytes) -> bytes:
    """A cache `[2, SLOTS, HEADS, HEAD_SIZE]` whose slots hold what a row wrote."""
    inner = HEADS * HEAD_SIZE * 2
    whole = bytearray(before)
    pieces = [raw[at : at + inner] for at in range(0, len(raw), inner)]
    for number, slot in enumerate(slots):
        for half in (0, 1):
            start = (half * SLOTS + slot) * inner
            whole[start : start + inner] = pieces[2 * number + half]
    return bytes(whole)
