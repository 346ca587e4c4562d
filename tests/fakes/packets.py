"""Packets for tests, built from JSON as a reader would meet them.

`make_packet()` is a valid packet of a small campaign on the embedded endpoint. Keyword arguments replace parts of its
document; a mapping is merged key by key, at any depth, everything else (lists included) is replaced:

    make_packet(kind="rehearsal", preregistration={"class": "record", "schedule": {"order": ["A1"]}})

`PREREG_YAML`, `ENGINE_JSON` and `INPUTS` are the bytes whose digests the packet pins; `write_packet_folder` puts a
packet and its files into a folder as freezing does.
"""

from collections.abc import Mapping
from pathlib import Path

from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from labctl.packet.model import EndpointPacket, Packet
from labctl.rundir import PacketPaths

PREREG_YAML = b"labctl: 1\nkind: endpoint\nid: quick-test\n"
ENGINE_JSON = canonical_json({"engine": "embedded", "version": "1"})
INPUTS = {
    "suite.yaml": b"labctl: 1\nkind: suite\nid: two\nprompts: [{id: one, text: a b a b}, {id: two, text: b a b a}]\n",
    "oracle.json": canonical_json({"rows": []}),
    "host.yaml": b"labctl: 1\nkind: host\nid: any-cpu\n",
}
_COMMIT = "ef334233deabeaeedb607056a2db1c90edb3887c"


def make_packet(**changes: object) -> EndpointPacket:
    """A valid packet with some parts of its document replaced."""
    return EndpointPacket.from_json(canonical_json(merged(packet_document(), changes)), "packet for a test")


def write_packet_folder(folder: Path, packet: Packet) -> PacketPaths:
    """The files of a frozen packet, written into a folder that is made here."""
    paths = PacketPaths(folder)
    paths.inputs.mkdir(parents=True)
    paths.approvals.mkdir()
    paths.packet.write_bytes(packet.canonical())
    paths.prereg.write_bytes(PREREG_YAML)
    paths.engine.write_bytes(ENGINE_JSON)
    for role, data in INPUTS.items():
        (paths.inputs / role).write_bytes(data)
    return paths


def merged(document: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """A document with changes merged into it, key by key."""
    result = dict(document)
    for key, value in changes.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return result


def packet_document() -> dict[str, object]:
    """The document of the packet, as plain values that may be changed."""
    return {
        "schema": "labctl/packet/1",
        "kind": "real",
        "service": "registered",
        "attempt": 1,
        "follows": None,
        "preregistration": preregistration_document(),
        "prereg_yaml_sha256": sha256_hex(PREREG_YAML),
        "repository": {
            "commit": _COMMIT,
            "tree_dirhash": "1" * 64,
            "files": 12,
            "prereg_path": "campaigns/quick-test/prereg.yaml",
            "committers": ["lab@example.org"],
        },
        "files": [
            {"role": role, "path": f"campaigns/inputs/{role}", "sha256": sha256_hex(data), "bytes": len(data)}
            for role, data in INPUTS.items()
        ],
        "sources": [],
        "models": [],
        "interpreter": {
            "key": "embedded",
            "resolved_sha256": "2" * 64,
            "version": "3.11.9",
            "distributions_sha256": "3" * 64,
            "pth_files": [],
        },
        "tool": {"version": "0.1.0", "tree_dirhash": "4" * 64},
        "analyzers": [{"name": "labctl", "sha256": "5" * 64}],
        "host": host_document(),
        "engine_sha256": sha256_hex(ENGINE_JSON),
        "host_checks": [],
        "environment_allowed": ["HOME", "PATH", "TMPDIR"],
    }


def preregistration_document() -> dict[str, object]:
    """The canonical preregistration inside the packet."""
    return {
        "labctl": 1,
        "kind": "endpoint",
        "id": "quick-test",
        "title": "Prompt lookup on the embedded endpoint",
        "author": "Lab One <lab@example.org>",
        "question": "Does prompt lookup raise the decode rate without changing a token?",
        "class": "exploratory",
        "host": "hosts/any-cpu.yaml",
        "interpreter": "embedded",
        "service": {
            "engine": "embedded",
            "command": ["{python}", "-m", "labctl.servers.reference", "--host", "{host}", "--port", "{port}"],
            "ready": {"timeout_s": 30},
        },
        "treatment": {
            "argument": "--speculation",
            "control": None,
            "candidate": "4",
            "proof": {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"},
        },
        "workload": {"suite": "suites/two.yaml", "max_tokens": 8, "temperature": 0, "seed": 1, "api": "completions"},
        "schedule": {"order": ["A1", "B1", "B2", "A2"], "stop_after_first_pair": True},
        "oracle": {"teacher": "oracles/two.json"},
        "gates": [{"kind": "exact_tokens"}, {"kind": "accounting"}],
        "decision": {"headline": "decode_rate_full", "reported_value": "lower_candidate_start"},
        "reviews": {"required": 0, "signatures": "none"},
        "authorizes": ["endpoint_run"],
        "excluded": ["retry"],
    }


def host_document() -> dict[str, object]:
    """The host profile inside the packet."""
    return {
        "labctl": 1,
        "kind": "host",
        "id": "any-cpu",
        "roots": {
            "authorization": ".labctl/authorization",
            "runs": ".labctl/runs",
            "analyses": ".labctl/analyses",
            "scratch": ".labctl/scratch",
        },
        "storage": {"allowed": ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs"]},
        "network": {"address": "127.0.0.1", "port": 0},
        "idle": {"window_s": 0, "max_cpu_percent": 100},
        "interpreters": {"embedded": "self"},
    }
