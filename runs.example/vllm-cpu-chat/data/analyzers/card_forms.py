"""The registered form of each record of a component or a probe, in the words of `record_forms`."""

import re

from .record_forms import ANY_COUNT, FORMS, KIND, NAME, NUMBERS, PORT, SEEN, SHA256, TEXTS, Form

TENSOR_NAME, POSITIVE = re.compile("[A-Za-z0-9][A-Za-z0-9_.]{0,127}"), range(1, 1 << 100)
COUNTS: Form = [ANY_COUNT]
IDENTITY = re.compile("[A-Za-z0-9][A-Za-z0-9:,/-]{0,127}")
VENDOR = ("cpu", "nvidia", "intel")
PLACE: dict[str, Form] = {
    "name": TENSOR_NAME, "shape": COUNTS, "stride": COUNTS, "dtype": str, "device": str, "storage_offset": ANY_COUNT,
    "data_ptr": ANY_COUNT, "storage_ptr": ANY_COUNT, "storage_bytes": ANY_COUNT,
}  # fmt: skip
TENSOR: Form = {**PLACE, "bytes": ANY_COUNT, "sha256": SHA256}
DRAW: Form = (
    {"kind": "uniform", "exponent": range(-20, 9), "offset": (0, 1)},
    {"kind": ("distinct", "consecutive"), "below": POSITIVE},
)
DRAWN: Form = {"draw": DRAW, "stream": str, "tensor": TENSOR}
BITS = re.compile("([0-9a-f]{2}){1,16}")
DIFFERENCE: Form = {"index": COUNTS, "expected_bits": BITS, "actual_bits": BITS, "differing_elements": POSITIVE}
PAIR: dict[str, Form] = {
    "name": TENSOR_NAME, "control": TENSOR, "candidate": TENSOR, "challenge_sha256": SHA256,
    "first_difference": (DIFFERENCE, None),
}  # fmt: skip
SAMPLE: Form = {"cache": ANY_COUNT, "base64": re.compile("[A-Za-z0-9+/]+={0,2}")}
ROW: Form = {
    "schema": "labctl/component-row/1", "row": POSITIVE, "arm": NAME, "case": NAME, "repeat": POSITIVE,
    "row_seed": ANY_COUNT, "inputs": [DRAWN], "boundaries": [PAIR], "sample": (SAMPLE, None), "buffers": [PLACE],
    "caches": [{**PAIR, "index": ANY_COUNT, "rest_sha256": SHA256}], "inputs_after": [SHA256],
    "started_mono_ns": ANY_COUNT, "ended_mono_ns": ANY_COUNT,
}  # fmt: skip
STATE: Form = {"buffers": [TENSOR], "caches": [TENSOR], "inputs": [TENSOR]}
LOOK: Form = {"asked": bool, "state": bool}
MICROCASE: Form = (
    {
        "kind": "must_raise", "name": NAME, "arm": NAME, "case": NAME, "row": POSITIVE, "row_seed": ANY_COUNT,
        "inputs": [DRAWN], "condition": ("cuda_graph", "xpu_graph", "jit_trace"), "before": LOOK, "during": LOOK,
        "after": LOOK, "exception": (str, None), "message": (str, None), "state_before": STATE, "state_after": STATE,
        "canary": {"operand": int, "captured": int, "replay_operand": int, "replayed": int},
    },
    {
        "kind": "must_stay_inert", "name": NAME, "owned": [PLACE], "state_before": STATE, "state_after": STATE,
        "row": ROW,
    },
)  # fmt: skip
OPEN_FILE: Form = {"target": str, "device": ANY_COUNT, "inode": ANY_COUNT}
CHANNELS: Form = {"warning_filters": TEXTS, "shows_warnings": str, "stdout": OPEN_FILE, "stderr": OPEN_FILE}
PROCESS_USE: Form = {
    "pid": int, "name": str, "memory_bytes": (int, None), "role": ("client", "observer", "tolerated"),
}  # fmt: skip
CARD: Form = {
    "vendor": VENDOR, "identity": IDENTITY, "bus_id": str, "drm_node": (str, None), "nodes": TEXTS, "index": int,
    "name": str, "driver": str, "memory_total_bytes": int, "memory_used_bytes": (int, None), "processes": [PROCESS_USE],
}  # fmt: skip
DISCOVERY: Form = {
    "schema": "labctl/devices/1", "vendor": VENDOR, "filtered_by": {"*": str}, "cards": [CARD], "remarks": TEXTS,
    "problems": TEXTS, "wall_ns": int, "mono_ns": int,
    "tool": {"name": str, "version": str, "path": (str, None), "sha256": (SHA256, None)},
    "answers": [{"argv": TEXTS, "pid": int, "exit_status": int, "stdout": str, "stdout_sha256": SHA256}],
}  # fmt: skip
CARD_STATE: Form = {"before": CARD, "after": CARD, "problems": TEXTS}
ORDER: dict[str, Form] = {
    "packet_kind": KIND, "packet_sha256": SHA256, "marker_sha256": SHA256, "index": POSITIVE, "leg": NAME,
    "machine_id_sha256": SHA256, "boot_id": str, "nonce": re.compile("[0-9a-f]{32}"), "interpreter": str, "argv": TEXTS,
    "environment": {"*": str}, "code": str, "inputs": {"*": SHA256}, "selection": object, "devices": object,
    "discovery_sha256": SHA256,
    "paths": dict.fromkeys(("leg", "scratch", "cache", "temporary", "home", "working"), str),
    "limits": {
        "timeout_s": int, "stop_timeout_s": int, "log_limit_bytes": int, "memory_limit_bytes": (int, None),
        "silence_s": int,
    },
}  # fmt: skip
COMPONENT: dict[str, Form] = {
    "order.json": {
        **ORDER, "schema": "labctl/component-order/1", "kind": "component", "card": CARD, "card_index": ANY_COUNT,
        "work": object,
    },
    "discovery.json": DISCOVERY,
    "pre-import.json": {
        "schema": "labctl/pre-import/1", "leg": NAME, "nonce": str, "packet_sha256": SHA256, "marker_sha256": SHA256,
        "order_sha256": SHA256, "discovery_sha256": (SHA256, None), "code_sha256": {"*": SHA256}, "argv": TEXTS,
        "executable": str, "executable_sha256": SHA256, "python": str, "flags": {"*": int}, "environment": {"*": str},
        "working_folder": str, "modules": TEXTS, "mapped_files": TEXTS, "cpus": COUNTS, "pid": POSITIVE,
        "start_ticks": ANY_COUNT, "boot_id": str, "wall_ns": ANY_COUNT, "mono_ns": ANY_COUNT,
    },
    "rows.jsonl": ROW,
    "component.json": {
        "schema": "labctl/component/1", "leg": NAME, "order_sha256": SHA256, "pre_import_sha256": SHA256,
        "rows_sha256": SHA256, "rows": ANY_COUNT, "pid": POSITIVE, "weights_before": [DRAWN], "weights_after": [TENSOR],
        "versions": ({"python": str, "torch": str, "torch_git": str, "accelerator": (str, None)}, None),
        "device": (
            {
                "device": str, "visible": ANY_COUNT, "name": str, "uuid": (str, None), "cpus": COUNTS,
                "memory_bytes": (ANY_COUNT, None), "threads": POSITIVE,
            },
            None,
        ),
        "caches": [DRAWN], "cache_layout": ({"slots_input": TENSOR_NAME, "slot_dim": ANY_COUNT}, None),
        "owned": [{"arm": NAME, "case": NAME, "buffers": [TENSOR]}], "microcases": [MICROCASE],
        "warnings": [{"category": str, "message": str}], "channels_before": (CHANNELS, None),
        "channels_after": (CHANNELS, None), "started_mono_ns": ANY_COUNT, "ended_mono_ns": ANY_COUNT,
        "timing": dict.fromkeys(("import_ns", "compute_ns", "recording_ns"), ANY_COUNT),
        "ending": (
            {"kind": "completed"},
            {
                "kind": "failed", "stage": ("import", "checkpoint", "row", "microcase", "closing"), "row": ANY_COUNT,
                "exception": str, "message": str, "traceback": TEXTS,
            },
        ),
    },
    "process.json": {
        "schema": "labctl/worker-process/1", "started_mono_ns": int, "root": (SEEN, None),
        "observed_mono_ns": (int, None), "tree": [SEEN], "cpus": NUMBERS, "pauses": int, "rows_seen": int,
    },
    "postflight.json": {
        "schema": "labctl/worker-postflight/1", "ended_mono_ns": int, "exit_status": (int, None), "timed_out": bool,
        "stopped_by_us": bool, "killed": NUMBERS, "processes_left": NUMBERS, "shared_memory_left": TEXTS,
        "log_bytes": int, "log_sha256": SHA256, "card": (CARD_STATE, None),
        "outlived?": NUMBERS,
    },
}  # fmt: skip
LINE: dict[str, Form] = {
    "schema": "labctl/probe-stage/1", "rank": ANY_COUNT, "nonce": str, "pid": POSITIVE, "wall_ns": ANY_COUNT,
    "mono_ns": ANY_COUNT,
}  # fmt: skip
STAGES: dict[str, Form] = {
    "import-done": {"torch": str, "python": str, "order_sha256": SHA256, "code_sha256": {"*": SHA256}},
    "device-set": {"device": str, "visible": ANY_COUNT, "name": str, "uuid": (str, None), "cpus": COUNTS},
    "pg-initialised": {"backend": str, "world_size": POSITIVE, "group_rank": ANY_COUNT},
    "tensor-allocated": {
        "dtype": str, "elements": POSITIVE, "data_ptr": POSITIVE, "sha256": SHA256, "shift": range(251),
    },
    "all_reduce-start": {},
    "all_reduce-done": {},
    "verified": {"sha256": SHA256, "data_ptr": POSITIVE},
    "teardown-done": {},
    "failed": {"reaching": str, "exception": str, "message": str},
}  # fmt: skip
PROBE: dict[str, Form] = {
    "order.json": {
        **ORDER, "schema": "labctl/probe-order/1", "kind": "probe", "address": "127.0.0.1", "port": PORT, "ranks": int,
        "backend": ("gloo", "nccl", "xccl"), "cards": [CARD], "collective": object, "timeouts": object,
        "rank_environment": [{"*": str}],
    },
    "postflight.json": {
        "schema": "labctl/probe-postflight/1", "ended_mono_ns": int, "timed_out": bool, "processes_left": NUMBERS,
        "shared_memory_left": TEXTS, "cards": [CARD_STATE], "outlived?": NUMBERS,
    },
    "rank.jsonl": tuple({**LINE, "stage": stage, "detail": detail} for stage, detail in STAGES.items()),
    "rank.exit.json": {
        "schema": "labctl/rank-exit/1", "rank": int, "leg": NAME, "pid": int, "start_ticks": int, "seen": (SEEN, None),
        "started_mono_ns": int, "ended_mono_ns": int, "exit_status": (int, None), "timed_out": bool, "killed": bool,
        "visible": DISCOVERY, "log_bytes": int, "log_sha256": SHA256,
    },
}  # fmt: skip
EVERY_KIND = ("LEG_STARTED.json", "exit.json")


def card_form(kind: str, name: str) -> Form:
    """The form of a record of a leg, by its file's name; any record where it has none."""
    if name in EVERY_KIND:
        return FORMS[name]
    generic = re.sub(r"^rank-[0-9]+\.", "rank.", name)
    return (PROBE if kind == "probe" else COMPONENT).get(generic, object)
