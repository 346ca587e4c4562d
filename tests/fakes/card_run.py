"""What synthetic component and probe runs have in common: packet, marker, cards, journal, and a real seal.

A kind of run gives its legs' files; `CardRun.seal(folder)` writes everything, closes each leg with its manifest and
lets the real `seal_run` seal it. `edits[path]` changes the bytes of any file below `data/`, before manifests are made;
`late_edits[path]` after them; `removed` leaves files out.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labctl.digest import manifest_lines, sha256_hex
from labctl.frozen import canonical_json
from labctl.packet.environment import base_environment
from labctl.packet.model import Packet
from labctl.packet.tool import analyzer_identity
from labctl.protocol import Event
from labctl.records.leg import LegExit, StopCause
from labctl.records.marker import Marker, MarkerHost
from labctl.records.order import LegStarted
from labctl.records.run import NOTHING_SHA256, AbortCause, ClosedRun, Outcome, OutcomeKind
from labctl.rundir import RunPaths
from labctl.seal.verify import SealedRun
from labctl.seal.write import seal_run
from tests.fakes.packets import packet_document
from tests.fakes.run_records import BOOT, MACHINE, head_files, journal_bytes
from tests.fakes.sealed_run import make_marker

Doc = dict[str, Any]
Edit = Callable[[bytes], bytes]

RUN_NAME = "quick-component-0123456789ab-00112233445566778899aabbccddeeff"
EXECUTABLE_SHA256 = "2" * 64
YAML = b"labctl: 1\n"


def torch_uuid(vendor: str, index: int) -> str | None:
    """The UUID of a card as torch shows it."""
    if vendor == "cpu":
        return None
    digits = f"5f2c1e3a{index:024x}"
    text = digits if vendor == "nvidia" else bytes.fromhex(digits)[::-1].hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def selecting(card: Doc) -> dict[str, str]:
    """The variables that make a process see one card alone."""
    if card["vendor"] == "nvidia":
        return {"CUDA_VISIBLE_DEVICES": card["identity"]}
    if card["vendor"] == "intel":
        return {"ZE_AFFINITY_MASK": str(card["index"]), "ONEAPI_DEVICE_SELECTOR": "level_zero:0"}
    return {}


def card_document(index: int, number: int | None = None, vendor: str = "cpu") -> Doc:
    """A card, as a discovery shows it; `number` is its place among the visible ones."""
    digits = f"5f2c1e3a{index:024x}"
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    identity = {"cpu": f"cpu:{index}", "nvidia": f"GPU-{uuid}", "intel": uuid}[vendor]
    return {
        "vendor": vendor,
        "identity": identity,
        "bus_id": str(index) if vendor == "cpu" else f"0000:0{index}:00.0",
        "drm_node": f"/dev/dri/card{index}" if vendor == "intel" else None,
        "nodes": [],
        "index": index if number is None else number,
        "name": "cpu",
        "driver": "Linux 6",
        "memory_total_bytes": 1 << 34,
        "memory_used_bytes": None,
        "processes": [],
    }


def discovery_document(cards: list[Doc], filtered_by: dict[str, str], vendor: str = "cpu") -> Doc:
    """What was found."""
    return {
        "schema": "labctl/devices/1",
        "vendor": vendor,
        "filtered_by": filtered_by,
        "cards": cards,
        "tool": {"name": "sched_getaffinity", "version": "Linux 6", "path": None, "sha256": None},
        "answers": [],
        "remarks": [],
        "problems": [],
        "wall_ns": 1,
        "mono_ns": 2,
    }


def completed(files: dict[str, bytes]) -> int:
    """What a leg counts: rows of a worker, ranks that exited with status 0."""
    statuses = [json.loads(data)["exit_status"] for name, data in files.items() if name.endswith(".exit.json")]
    return files.get("rows.jsonl", b"").count(b"\n") + statuses.count(0)


@dataclass
class CardRun:
    """A run of some kind; see the module's documentation."""

    packet: Doc = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    late_edits: dict[str, Edit] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    inputs: dict[str, bytes] = field(default_factory=dict)
    causes: dict[str, StopCause] = field(default_factory=dict)
    devices: Doc = field(default_factory=lambda: discovery_document([card_document(index) for index in range(2)], {}))
    abort_cause: AbortCause | None = None
    kind: str = "real"
    root: Path = field(default_factory=Path)

    def preregistration(self) -> Doc:
        """What the campaign registers."""
        raise NotImplementedError

    def leg_files(self, index: int, order_head: Doc) -> dict[str, bytes]:
        """The files of one leg that its kind makes, `order.json` among them."""
        raise NotImplementedError

    def span(self, index: int) -> tuple[int, int]:
        """When a leg started and ended, on the monotonic clock."""
        return index * 1_000_000_000_000, index * 1_000_000_000_000 + 900_000

    def seal(self, folder: Path) -> SealedRun:
        """Write and seal the run below a folder."""
        self.root = folder / RUN_NAME
        packet = self.frozen_packet()
        host = MarkerHost(machine_id_sha256=MACHINE, boot_id=BOOT, controller_pid=1, controller_start_ticks=1)
        marker = make_marker(packet, RUN_NAME, host)
        for name, data in self._head_files(packet, marker).items():
            self._put(name, data)
        names = list(packet.order)
        for index, name in enumerate(names, start=1):
            self._put_leg(packet, marker, (index, name))
            if self.causes.get(name, StopCause.COMPLETED) is not StopCause.COMPLETED:
                names = names[:index]
                break
        outcome = self._outcome(names)
        self._put("journal.jsonl", journal_bytes(self._events(names, outcome)))
        self._put("outcome.json", outcome.canonical())
        return seal_run(ClosedRun(RunPaths(self.root), outcome), NOTHING_SHA256)

    def frozen_packet(self) -> Packet:
        """The packet of the run."""
        document = packet_document()
        document |= {
            "kind": self.kind,
            "analyzers": [analyzer_identity().model_dump(mode="json")],
            "engine_sha256": None,
            "prereg_yaml_sha256": sha256_hex(YAML),
            "preregistration": self.preregistration(),
            "files": [
                {"role": role, "path": f"campaigns/{role}", "sha256": sha256_hex(data), "bytes": len(data)}
                for role, data in self.inputs.items()
            ],
            "environment_allowed": sorted(base_environment(home="", temporary="")),
            **self.packet,
        }
        return Packet.from_json(canonical_json(document), "packet")

    def _head_files(self, packet: Packet, marker: Marker) -> dict[str, bytes]:
        return head_files(packet, marker, YAML) | {
            "host/devices.json": canonical_json(self.devices),
            **{f"packet/inputs/{role}": data for role, data in self.inputs.items()},
        }

    def order_head(self, packet: Packet, marker: Marker, leg: tuple[int, str]) -> Doc:
        """What the orders of both kinds say."""
        index, name = leg
        said = packet.preregistration.model_dump(mode="json")
        scratch = f"/scratch/{RUN_NAME}/{name}"
        folder = f"/runs/{RUN_NAME}/data/legs/{index:02d}-{name}"
        paths = {"leg": folder, "scratch": scratch, "cache": f"{scratch}/cache", "temporary": f"{scratch}/tmp"}
        paths |= {"home": f"{scratch}/home", "working": f"{scratch}/cwd"}
        return {
            "packet_kind": packet.kind,
            "packet_sha256": packet.id,
            "marker_sha256": sha256_hex(marker.canonical()),
            "index": index,
            "leg": name,
            "machine_id_sha256": MACHINE,
            "boot_id": BOOT,
            "nonce": sha256_hex(f"{marker.nonce}:{name}".encode())[:32],
            "interpreter": "/opt/python",
            "environment": base_environment(home=paths["home"], temporary=paths["temporary"]),
            "paths": paths,
            "limits": {
                "timeout_s": said["worker"]["timeout_s"] if "worker" in said else said["timeouts"]["total_s"],
                "stop_timeout_s": 10,
                "log_limit_bytes": 16 << 20,
                "memory_limit_bytes": None,
                "silence_s": 10,
            },
            "code": f"{scratch}/code",
            "inputs": {role: sha256_hex(data) for role, data in self.inputs.items()},
            "selection": said["cards"],
            "devices": {
                "xpu_smi": "/usr/bin/xpu-smi",
                "timeout_s": 30,
                "max_memory_used_mib": 1024,
                "memory_slack_mib": 64,
                "tolerated_processes": ["nvidia-persistenced"],
                "idle_cards": None,
            },
            "discovery_sha256": sha256_hex(self._edited("host/devices.json", canonical_json(self.devices))),
        }

    def _put_leg(self, packet: Packet, marker: Marker, leg: tuple[int, str]) -> None:
        index, name = leg
        at = f"legs/{index:02d}-{name}"
        files = self.leg_files(index, self.order_head(packet, marker, leg))
        started_ns, ended_ns = self.span(index)
        order = self._edited(f"{at}/order.json", files["order.json"])
        started = LegStarted(
            leg=name, order_sha256=sha256_hex(order), pid=50, start_ticks=9, boot_id=BOOT, wall_ns=1, mono_ns=started_ns
        )
        cause = self.causes.get(name, StopCause.COMPLETED)
        leg_exit = LegExit(
            leg=name, cause=cause, problems=() if cause is StopCause.COMPLETED else ("it failed",),
            rows_completed=completed(files), wall_ns=1, mono_ns=ended_ns,
        )  # fmt: skip
        files |= {"LEG_STARTED.json": started.canonical(), "exit.json": leg_exit.canonical(), "leg.log": b""}
        written = {path: self._put(f"{at}/{path}", data) for path, data in files.items()}
        lines = {path: sha256_hex(data) for path, data in written.items() if data is not None}
        self._put(f"{at}/leg-manifest-sha256.txt", manifest_lines(lines))
        for path in files:
            if (edit := self.late_edits.get(f"{at}/{path}")) is not None:
                target = self.root / "data" / at / path
                target.write_bytes(edit(target.read_bytes()))

    def _outcome(self, names: list[str]) -> Outcome:
        failed = [name for name in names if self.causes.get(name, StopCause.COMPLETED) is not StopCause.COMPLETED]
        closed = tuple(name for name in names if name not in failed)
        if failed or self.abort_cause is not None:
            cause = self.abort_cause or AbortCause.LEG_FAILED
            return Outcome(outcome=OutcomeKind.ABORTED, cause=cause, detail=("a leg failed",), legs_closed=closed)
        return Outcome(outcome=OutcomeKind.COMPLETED, cause=None, detail=(), legs_closed=closed)

    def _events(self, names: list[str], outcome: Outcome) -> Iterator[tuple[Event, str | None]]:
        yield Event.PREFLIGHT_RECORDED, None
        for name in names:
            yield Event.LEG_STARTED, name
            if name in outcome.legs_closed:
                yield Event.LEG_CLOSED, name
        yield (Event.RUN_CLOSED if outcome.outcome is OutcomeKind.COMPLETED else Event.RUN_ABORTED), None

    def _edited(self, name: str, data: bytes) -> bytes:
        edit = self.edits.get(name)
        return data if edit is None else edit(data)

    def _put(self, name: str, data: bytes) -> bytes | None:
        if name in self.removed:
            return None
        path = self.root / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        edited = self._edited(name, data)
        path.write_bytes(edited)
        return edited
