"""The registered form of each small record: which keys it has, and what stands there."""

import re
from collections.abc import Iterator, Mapping

from .sealed_files import Broken, Doc, problem

# A form is a type, a value, a pattern, a range, a list with the form of its members, a mapping (closed, but for `*`,
# which stands for any other key, and for keys that end with `?`, which may be absent), or a tuple of such forms.
Form = object
SHA256, NAME = re.compile("[0-9a-f]{64}"), re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LEG_NAME, COMMIT = re.compile("[AB][1-9][0-9]?"), re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
CONTENT = re.compile("(?s:.{1,200000})")
MESSAGES: Form = [{"role": ("system", "user", "assistant"), "content": CONTENT}]
ANY_COUNT, PORT = range(1 << 100), range(1, 1 << 16)
TEXTS, NUMBERS, KIND = [str], [int], ("real", "rehearsal")
SEEN: Form = {
    "pid": int, "parent_pid": int, "start_ticks": int, "executable": str, "argv": TEXTS, "environment": {"*": str},
    "environment_other": TEXTS,
}  # fmt: skip
LISTENER: Form = {"address": str, "inode": int, "owner_pids": NUMBERS}
READINESS: Form = {
    "process_started_mono_ns": int, "ready_mono_ns": int, "attempts": int, "version_body": str, "models_body": str,
    "served_model": str,
}  # fmt: skip
LANE: Form = {
    "key": {"target": re.compile("[^\r\n]{1,2000}"), "metric": str, "machine_id_sha256": SHA256},
    "attempt": range(1, 1 << 100),
}
EVENTS = (
    "preflight_recorded", "leg_started", "leg_closed", "phase_answered", "phase_stopped", "run_closed", "run_aborted",
)  # fmt: skip
CAUSES = ("leg_failed", "host_fault", "operator", "controller_killed", "evidence", "secret_found")
STOPS = ("completed", "not_ready", "stream", "interrupted", "log_limit", "leftover", "refused", "host", "worker")
ENDS = ("complete", "status_not_200", "transport_error", "timeout", "over_limit", "interrupted")
FORMS: dict[str, Form] = {
    "marker.copy.json": {
        "schema": "labctl/marker/1", "kind": KIND, "packet_sha256": SHA256, "prereg_sha256": SHA256,
        "git_commit": COMMIT, "tree_dirhash": SHA256, "order": [NAME], "run_dir": NAME,
        "nonce": re.compile("[0-9a-f]{32}"), "approvals": [SHA256], "file_systems": {"*": str},
        "host": {"machine_id_sha256": SHA256, "boot_id": str, "controller_pid": int, "controller_start_ticks": int},
        "rehearsal_seal_sha256": (SHA256, None), "wall_ns": ANY_COUNT, "mono_ns": ANY_COUNT, "lane?": LANE,
    },
    "identity.json": {
        "schema": "labctl/host-identity/1", "machine_id_sha256": SHA256, "boot_id": str, "hostname": str, "kernel": str,
        "architecture": str, "cpu_model": str, "cpu_count": int, "cpuinfo_sha256": SHA256, "memory_bytes": int,
        "clocksource": str, "governors": TEXTS, "python": str, "distributions": TEXTS,
    },
    "preflight.json": {
        "schema": "labctl/preflight/1", "packet_sha256": SHA256, "file_systems": {"*": str},
        "findings": [{"check": NAME, "expected": str, "observed": str, "is_met": bool}],
        "rehearsal_seal_sha256": (SHA256, None),
    },
    "oracle.json": {
        "labctl": 1, "kind": "oracle", "suite_sha256": SHA256, "api": ("completions", "chat"),
        "max_tokens": range(1, 1 << 100), "ignore_eos": bool,
        "origin": (
            {"run": NAME, "seal_sha256": SHA256, "packet_sha256": SHA256, "leg": NAME},
            {"kind": "imported", "files": [{"schema_name": str, "sha256": SHA256}], "source_sha256": SHA256},
        ),
        "rows": [{
            "prompt": NAME, "prompt_token_ids_sha256?": (SHA256, None), "token_ids?": ([range(1 << 31)], None),
            "text_sha256?": (SHA256, None), "finish_reason?": (("length", "stop"), None),
        }],
    },
    "order.json": {
        "schema": "labctl/order/1", "kind": "endpoint", "packet_kind": KIND, "packet_sha256": SHA256,
        "marker_sha256": SHA256, "index": range(1, 1 << 100), "leg": LEG_NAME, "arm": ("A", "B"),
        "machine_id_sha256": SHA256, "boot_id": str, "nonce": re.compile("[0-9a-f]{32}"), "address": "127.0.0.1",
        "port": PORT, "argv": TEXTS, "environment": {"*": str}, "engine": {"*": object},
        "cards?": {"*": object}, "devices?": {"*": object},
        "paths": {"leg": str, "scratch": str, "cache": str, "temporary": str, "home": str, "working": str},
        "limits": {
            "ready_timeout_s": int, "stop_timeout_s": int, "request_timeout_s": int, "log_limit_bytes": int,
            "response_limit_bytes": int, "silence_s": int,
        },
        "requests": {
            "api": ("completions", "chat"), "max_tokens": int, "seed": int, "ignore_eos": bool,
            "prompts": [{"id": NAME, "text": (CONTENT, None), "messages": (MESSAGES, None)}],
        },
    },
    "LEG_STARTED.json": {
        "schema": "labctl/leg-started/1", "leg": NAME, "order_sha256": SHA256, "pid": int, "start_ticks": int,
        "boot_id": str, "wall_ns": int, "mono_ns": int,
    },
    "process.json": {
        "schema": "labctl/process/1", "root": SEEN, "tree": [SEEN], "listeners": [LISTENER],
        "listeners_after": [LISTENER], "roots_after": NUMBERS, "readiness": READINESS,
    },
    "postflight.json": {
        "schema": "labctl/postflight/1", "stop_signal_mono_ns": int, "ended_mono_ns": int, "exit_status": (int, None),
        "killed": NUMBERS, "processes_left": NUMBERS, "listeners_left": [LISTENER], "shared_memory_left": TEXTS,
        "log_bytes": int, "log_sha256": SHA256,
        "device_memory?": [{"identity": str, "before_bytes": int, "after_bytes": int}],
    },
    "exit.json": {
        "schema": "labctl/leg-exit/1", "leg": NAME, "cause": STOPS, "problems": TEXTS, "rows_completed": int,
        "wall_ns": int, "mono_ns": int,
    },
    "telemetry.jsonl": {
        "row": int, "mono_ns": int, "load_1m_milli": int, "cpu_ticks_total": int, "cpu_ticks_idle": int,
        "memory_available_bytes": int, "server_rss_bytes": int, "cpu_frequency_mhz": NUMBERS,
    },
    "journal.jsonl": {
        "schema": "labctl/journal/1", "seq": int, "prev": SHA256, "event": EVENTS, "leg": (str, None), "detail": str,
        "wall_ns": int, "mono_ns": int,
    },
    "outcome.json": {
        "schema": "labctl/outcome/1", "outcome": ("completed", "phase_stopped", "aborted"), "cause": (CAUSES, None),
        "detail": TEXTS, "legs_closed": TEXTS,
    },
    "phase": {
        "schema": "labctl/phase/1", "analyzer": NAME, "analyzer_sha256": SHA256, "legs": {"*": SHA256},
        "continue": bool, "reasons": TEXTS,
    },
    "opened": {
        "event": "opened", "schema_id": "labctl/wire/1", "row": range(1, 1 << 100), "prompt_id": NAME, "host": str,
        "port": PORT, "stamps": ("kernel_software_rx", "none"), "clock_offset_ns": int,
        "boottime_minus_monotonic_ns": int,
    },
    "connect_started": {"event": "connect_started", "mono_ns": ANY_COUNT, "realtime_ns": ANY_COUNT},
    "connected": {
        "event": "connected", "mono_ns": ANY_COUNT, "realtime_ns": ANY_COUNT, "local_port": PORT, "peer_address": str,
        "peer_port": PORT,
    },
    "sent": {
        "event": "sent", "mono_before_ns": ANY_COUNT, "mono_after_ns": ANY_COUNT, "realtime_ns": ANY_COUNT,
        "bytes_latin1": re.compile("[\x00-\xff]+"),
    },
    "read": {
        "event": "read", "kernel_ns": (range(1, 1 << 100), None), "mono_ns": ANY_COUNT, "length": range(1, 1 << 100),
    },
    "closed": {
        "event": "closed", "mono_ns": ANY_COUNT, "clock_offset_ns": int, "boottime_minus_monotonic_ns": int,
        "ended": ENDS, "detail": (str, None), "http_status": (int, None), "peer_closed": bool,
        "gc_collections": ANY_COUNT,
    },
}  # fmt: skip


def require_form(name: str, value: Doc, where: str) -> Doc:
    """A record, if it is of its form; else Broken, with everything in which it is not."""
    return require(FORMS[name], value, where)


def require(form: Form, value: Doc, where: str) -> Doc:
    """A value, if it is of a form; else Broken, with everything in which it is not."""
    found = _differences(form, value, "")
    if faults := [problem("RECORD_FORM", where + place, "its registered form", got) for place, got in found]:
        raise Broken(*faults)
    return value


def _differences(form: Form, value: object, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(form, dict) and isinstance(value, dict):
        yield from _of_mapping(form, value, at)
    elif isinstance(form, list) and isinstance(value, list):
        for number, member in enumerate(value):
            yield from _differences(form[0], member, f"{at}[{number}]")
    elif isinstance(form, tuple):
        if all(any(_differences(one, value, at)) for one in form):
            yield at, repr(value)[:80]
    elif not _is_of(form, value):
        yield at, repr(value)[:80]


def _of_mapping(form: Mapping[str, Form], value: Mapping[str, object], at: str) -> Iterator[tuple[str, str]]:
    known = {key.removesuffix("?"): part for key, part in form.items()}
    for key in sorted(known.keys() | value.keys()):
        if key in value and (key in known or "*" in known):
            yield from _differences(known.get(key, known.get("*")), value[key], f"{at}.{key}")
        elif key != "*" and f"{key}?" not in form:
            yield f"{at}.{key}", "nothing" if key in known else "a key too many"


def _is_of(form: Form, value: object) -> bool:
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    if isinstance(form, range):
        return type(value) is int and value in form
    if isinstance(form, type):
        return form is object or type(value) is form
    return type(value) is type(form) and value == form
