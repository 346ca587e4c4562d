"""A synthetic run as a campaign would leave it: real records, real wire bytes, sealed by the real `seal_run`.

```
builder = RunBuilder()                       # A1 B1 B2 A2, two prompts, 101 tokens, speculation in B
builder.leg("B1").rows[0].ids[5] = 7         # spoil one thing; usage, counters, manifests follow consistently
run = builder.seal(tmp_path)                 # a SealedRun; builder.root is its folder
```

What can be spoiled:

- `RunBuilder(...)`: `order`, `prompts`, `tokens`, `packet` (changes to the packet's document, merged key by key, a
  treatment replaced whole), `stops` (whether a phase stop is registered), `api` (completions or chat),
  `vocabulary`, `inputs` (more pinned files by role).
- a leg: `before`, `after` (counter values by vocabulary field; None: absent; `accepted_per_position` is a list,
  `cache_config` the labels), `log`, `telemetry`, `binaries`, `maps`, `observed_argv`, `observed_environment`,
  `exit_cause`.
- a row: `ids`, `gap_ns`, `cached_tokens`, `finish`, `model`, `has_kernel_stamps`, `clock_step_ns`, `suspended_ns`,
  `edit_body` (event-stream bytes to bytes), `edit_response` (HTTP response bytes to bytes), `ended`, `merge_reads`,
  `pause` (after which event, for how many ns).
- `edits[path] = function`: bytes to bytes of any file below `data/`, before manifests are made (for JSON: `json_edit`).
- `untold`: keys that the teacher's rows leave out.
- `lane`: what the marker says of the lane; None: nothing. `noise`: the bytes of a pinned noise record.
- `outcome`, `removed` (paths below `data/` to leave out), `phase_answer` (a function from the true answer to another).

`builder.write(folder)` only writes, for open runs; `builder.legs_written = 2` stops after so many legs.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from labctl.analyze.files import OpenRunFiles
from labctl.analyze.load import load_evidence
from labctl.analyze.phase import answer_phase
from labctl.digest import manifest_lines, sha256_hex
from labctl.engines.reference import VOCABULARY
from labctl.engines.vocabulary import EngineVocabulary
from labctl.frozen import canonical_json
from labctl.packet.environment import base_environment
from labctl.packet.model import EndpointPacket
from labctl.packet.tool import analyzer_identity
from labctl.prereg.any_campaign import order_for
from labctl.prereg.arms import StartValues, arm_argv, arm_environment, fill, fill_environment
from labctl.prereg.model import Api, Arm, Preregistration
from labctl.prereg.suite import Suite
from labctl.protocol import Event
from labctl.records.lane import Lane
from labctl.records.leg import LegExit, Listener, Postflight, ProcessRecord, ProcessSeen, Readiness, StopCause
from labctl.records.marker import Marker, MarkerHost
from labctl.records.order import LegStarted, Limits, Requests, StartPaths, WorkOrder
from labctl.records.requests import Generation, request_body
from labctl.records.run import (
    NOTHING_SHA256,
    ClosedRun,
    Outcome,
    OutcomeKind,
    PhaseAnswer,
)
from labctl.records.wire import Connected, ConnectStarted, Ended, Line, Read, RowClosed, RowOpened, Sent, wire_lines
from labctl.rundir import RunPaths
from labctl.seal.verify import SealedRun
from labctl.seal.write import seal_run
from tests.fakes.packets import PREREG_YAML, make_packet
from tests.fakes.run_records import BOOT, MACHINE, WALL_NS, head_files, journal_bytes

RUN_NAME = "quick-test-0123456789ab-00112233445566778899aabbccddeeff"
NONCE = "0f" * 16
DRAFTED = 4
SPECULATION = json.dumps({"method": "ngram", "num_speculative_tokens": DRAFTED})
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
GATES = (
    {"kind": "exact_tokens"},
    {"kind": "cross_leg_exact"},
    {"kind": "cold", "cached_tokens": 0, "requests_per_start": 2},
    {"kind": "accounting"},
    {
        "kind": "clean_log",
        "deny": [{"pattern": "not compiled", "example": "not compiled"}],
        "unknown_environment": "fail",
    },
    {
        "kind": "pair",
        "id": "pair-decode",
        "metric": "decode_rate_conventional_1_100",
        "min_row_wins": 2,
        "min_headline_gain_percent": "10",
    },
    {"kind": "control_near", "reference": "1000", "within_percent": "5"},
)
Edit = Callable[[bytes], bytes]
Counted = float | list[float] | dict[str, str] | None


@dataclass
class RowScript:
    """What one row will say."""

    prompt_id: str
    prompt_ids: list[int]
    ids: list[int]
    gap_ns: int
    tokens_per_event: int
    cached_tokens: int | None = 0
    finish: str | None = "length"
    model: str | None = None
    has_kernel_stamps: bool = True
    clock_step_ns: int = 0
    suspended_ns: int = 0
    edit_body: Edit | None = None
    edit_response: Edit | None = None
    ended: Ended = "complete"
    merge_reads: bool = False
    pause: tuple[int, int] | None = None

    def steps(self) -> list[list[int]]:
        """The ids of each event: one in the first, then `tokens_per_event`."""
        rest = self.ids[1:]
        size = self.tokens_per_event
        return [self.ids[:1], *(rest[at : at + size] for at in range(0, len(rest), size))]


@dataclass
class LegScript:
    """What one start will say."""

    name: str
    index: int
    rows: list[RowScript]
    before: dict[str, Counted]
    after: dict[str, Counted]
    log: bytes = b"INFO starting\r\nINFO ready\n"
    telemetry: bytes | None = None
    binaries: str | None = None
    maps: bytes = b"/usr/lib/libc.so.6\t08:01 12\n/usr/lib/libm.so.6\t08:01 13\n"
    observed_argv: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple
    observed_environment: Callable[[dict[str, str]], dict[str, str]] = dict
    exit_cause: StopCause = StopCause.COMPLETED

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.index:02d}-{self.name}"

    @property
    def base_ns(self) -> int:
        """Where its monotonic times begin."""
        return self.index * 1_000_000_000_000


@dataclass
class RunBuilder:
    """A run that can be spoiled in one place; see the module's documentation."""

    order: tuple[str, ...] = ("A1", "B1", "B2", "A2")
    prompts: int = 2
    tokens: int = 101
    stops: bool = True
    api: Api = Api.COMPLETIONS
    vocabulary: EngineVocabulary = VOCABULARY
    inputs: dict[str, bytes] = field(default_factory=dict)
    packet: dict[str, object] = field(default_factory=dict)
    gap_ns: dict[str, int] = field(default_factory=lambda: {"A": 1_000_000, "B": 1_400_000})
    edits: dict[str, Edit] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    outcome: Outcome | None = None
    legs_written: int | None = None
    phase_answer: Callable[[PhaseAnswer], PhaseAnswer] | None = None
    lane: Lane | None = None
    noise: bytes | None = None
    untold: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.suite = Suite.from_json(canonical_json(self._suite_document()), "suite")
        self.legs = [self._leg(name, index) for index, name in enumerate(self.order, start=1)]
        self.teacher = [list(row.ids) for row in self.legs[0].rows]
        self.root = Path()

    def leg(self, name: str) -> LegScript:
        """One leg, by name."""
        return next(leg for leg in self.legs if leg.name == name)

    def seal(self, folder: Path) -> SealedRun:
        """Write and seal the run below a folder."""
        paths, outcome = self.write(folder)
        return seal_run(ClosedRun(paths, outcome), NOTHING_SHA256)

    def write(self, folder: Path) -> tuple[RunPaths, Outcome]:
        """Write the run below a folder, unsealed."""
        self.root = folder / RUN_NAME
        frozen = self.frozen_packet()
        marker = self._marker(frozen)
        self._put_all(self._packet_files(frozen, marker))
        legs = self.legs[: self.legs_written]
        for leg in legs[:2]:
            self._put_leg(leg, frozen, marker)
        self._put("journal.jsonl", journal_bytes(_leg_events(legs[:2])))
        events = _leg_events(legs)
        if self.stops and len(legs) > 1:
            has_stopped = not self._put_phase()
            events = [*_leg_events(legs[:2]), (_phase_event(has_stopped), None), *_leg_events(legs[2:])[1:]]
        for leg in legs[2:]:
            self._put_leg(leg, frozen, marker)
        outcome = self.outcome or self._outcome(events, legs)
        if outcome.outcome is OutcomeKind.ABORTED:
            events = [*events, (Event.RUN_ABORTED, None)]
        else:
            events = [*events, (Event.RUN_CLOSED, None)]
        self._put("journal.jsonl", journal_bytes(events))
        self._put("outcome.json", outcome.canonical())
        return RunPaths(self.root), outcome

    def frozen_packet(self) -> EndpointPacket:
        """The packet of the run."""
        suite, oracle = self._suite_bytes(), self._oracle_bytes()
        analyzer = analyzer_identity()
        inputs = {"suite.yaml": suite, "oracle.json": oracle} | ({"noise.json": self.noise} if self.noise else {})
        document: dict[str, object] = {
            "analyzers": [analyzer.model_dump(mode="json")],
            "engine_sha256": sha256_hex(self.vocabulary.canonical()),
            "files": [
                {"role": role, "path": f"inputs/{role}", "sha256": sha256_hex(data), "bytes": len(data)}
                for role, data in inputs.items()
            ],
            "environment_allowed": sorted(base_environment(home="", temporary="")),
            "preregistration": self._preregistration(),
        }
        first = make_packet(**document)
        if not self.packet:
            return first
        merged = make_packet(**document).model_dump(mode="json")
        return EndpointPacket.from_json(canonical_json(_merge(merged, self.packet)), "packet")

    def _preregistration(self) -> dict[str, object]:
        gates = [dict(gate) for gate in GATES]
        gates[2]["requests_per_start"] = self.prompts
        return {
            "expectation": {"effect_percent": [10, 60]},
            "service": {
                "engine": "reference",
                "command": [
                    *("{python}", "-m", "labctl.servers.reference", "--host", "{host}", "--port", "{port}"),
                    *("--served-model-name", "labctl-{nonce}"),
                ],
            },
            "treatment": {"argument": "--speculative-config", "control": None, "candidate": SPECULATION},
            "workload": {"max_tokens": self.tokens, "api": self.api.value},
            "schedule": {"order": list(self.order), "stop_after_first_pair": self.stops},
            "gates": gates,
            "decision": {
                "headline": "decode_rate_conventional_1_100",
                "reported_value": "lower_candidate_start",
                "record_to_beat": "1000",
                "floor_over_record_percent": "0.25",
            },
        }

    def _suite_document(self) -> dict[str, object]:
        texts = [(f"p{number:02d}", f"prompt {number}") for number in range(1, self.prompts + 1)]
        prompts = [{"id": name, **self._content(text)} for name, text in texts]
        return {"labctl": 1, "kind": "suite", "id": "synthetic", "prompts": prompts}

    def _content(self, text: str) -> dict[str, object]:
        is_chat = self.api is Api.CHAT
        return {"messages": [{"role": "user", "content": text}]} if is_chat else {"text": text}

    def _suite_bytes(self) -> bytes:
        return json.dumps(self._suite_document()).encode()  # flow style is YAML too

    def _oracle_bytes(self) -> bytes:
        rows = [
            {
                "prompt": row.prompt_id,
                "prompt_token_ids_sha256": sha256_hex(canonical_json(row.prompt_ids)),
                "token_ids": ids,
                "text_sha256": sha256_hex("".join(map(_text, ids)).encode()),
                "finish_reason": "length",
            }
            for row, ids in zip(self.legs[0].rows, self.teacher, strict=True)
        ]
        rows = [{name: one for name, one in row.items() if name not in self.untold} for row in rows]
        origin = {"run": "teacher-run", "seal_sha256": "6" * 64, "packet_sha256": "7" * 64, "leg": "A1"}
        return canonical_json(
            {
                "labctl": 1,
                "kind": "oracle",
                "suite_sha256": sha256_hex(self._suite_bytes()),
                "api": self.api.value,
                "max_tokens": self.tokens,
                "ignore_eos": False,
                "origin": origin,
                "rows": rows,
            }
        )

    def _leg(self, name: str, index: int) -> LegScript:
        size = 1 if name[0] == "A" else 2
        rows = [
            RowScript(
                prompt_id=prompt.id,
                prompt_ids=list(range(1, 6 + number)),
                ids=[(17 * number + 13 * place + place * place % 11) % 500 for place in range(self.tokens)],
                gap_ns=self.gap_ns[name[0]] + 1000 * number + 10 * index,
                tokens_per_event=size,
            )
            for number, prompt in enumerate(self.suite.prompts)
        ]
        return LegScript(name, index, rows, before=_counters([], 1), after=_counters(rows, size))

    def _marker(self, packet: EndpointPacket) -> Marker:
        host = MarkerHost(machine_id_sha256=MACHINE, boot_id=BOOT, controller_pid=1, controller_start_ticks=1)
        return Marker(
            kind=packet.kind,
            packet_sha256=packet.id,
            prereg_sha256=packet.prereg_yaml_sha256,
            git_commit=packet.repository.commit,
            tree_dirhash=packet.repository.tree_dirhash,
            order=order_for(packet.preregistration, NONCE),
            run_dir=RUN_NAME,
            nonce=NONCE,
            host=host,
            lane=self.lane,
            approvals=(),
            file_systems={"runs": "ext4"},
            rehearsal_seal_sha256=None,
            wall_ns=WALL_NS,
            mono_ns=5,
        )

    def _packet_files(self, packet: EndpointPacket, marker: Marker) -> dict[str, bytes]:
        return head_files(packet, marker, PREREG_YAML) | {
            "packet/engine.json": self.vocabulary.canonical(),
            **{f"packet/inputs/{role}": data for role, data in self.inputs.items()},
            "packet/inputs/suite.yaml": self._suite_bytes(),
            "packet/inputs/oracle.json": self._oracle_bytes(),
            **({"packet/inputs/noise.json": self.noise} if self.noise else {}),
        }

    def _put_phase(self) -> bool:
        evidence = load_evidence(OpenRunFiles(self.root))
        answer = answer_phase(evidence, analyzer_identity().sha256, evidence.conflicts)
        if self.phase_answer is not None:
            answer = self.phase_answer(answer)
        self._put("phase1/labctl.json", answer.canonical())
        return answer.may_continue

    def _outcome(self, events: list[tuple[Event, str | None]], legs: list[LegScript]) -> Outcome:
        closed = tuple(name for event, name in events if event is Event.LEG_CLOSED and name is not None)
        if len(legs) < len(self.order):
            stopped = OutcomeKind.PHASE_STOPPED
            return Outcome(outcome=stopped, cause=None, detail=("the first pair did not pass",), legs_closed=closed)
        return Outcome(outcome=OutcomeKind.COMPLETED, cause=None, detail=(), legs_closed=closed)

    def _put_all(self, files: dict[str, bytes]) -> None:
        for name, data in files.items():
            self._put(name, data)

    def _put(self, name: str, data: bytes) -> None:
        if name in self.removed:
            return
        path = self.root / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.edits[name](data) if name in self.edits else data)

    def _put_leg(self, leg: LegScript, packet: EndpointPacket, marker: Marker) -> None:
        at = f"legs/{leg.folder}"
        order = self._work_order(leg, packet, marker)
        self._put_all({f"{at}/{name}": data for name, data in self._leg_files(leg, order).items()})
        for number, row in enumerate(leg.rows, start=1):
            received, lines = _wire(leg, order, (number, row))
            self._put(f"{at}/wire/{number:02d}.bin", received)
            self._put(f"{at}/wire/{number:02d}.reads.jsonl", wire_lines(lines))
        folder = self.root / "data" / at
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests = {path.relative_to(folder).as_posix(): sha256_hex(path.read_bytes()) for path in files}
        self._put(f"{at}/leg-manifest-sha256.txt", manifest_lines(digests))

    def _work_order(self, leg: LegScript, packet: EndpointPacket, marker: Marker) -> WorkOrder:
        paths = _start_paths(leg)
        nonce = sha256_hex(f"{marker.nonce}:{leg.name}".encode())[:32]
        values = StartValues(
            python="/opt/python", host="127.0.0.1", port=18000 + leg.index, nonce=nonce, leg_dir=paths.scratch,
            cache_dir=paths.cache, models={}, binaries=leg.binaries,
        )  # fmt: skip
        arm, registered = Arm.of_leg(leg.name), packet.preregistration
        workload = registered.workload
        return WorkOrder(
            kind="endpoint",
            packet_kind=packet.kind,
            packet_sha256=packet.id,
            marker_sha256=sha256_hex(marker.canonical()),
            index=leg.index,
            leg=leg.name,
            arm=arm,
            machine_id_sha256=MACHINE,
            boot_id=BOOT,
            nonce=nonce,
            address="127.0.0.1",
            port=values.port,
            argv=fill(arm_argv(registered, arm), values),
            environment=base_environment(home=paths.home, temporary=paths.temporary)
            | fill_environment(arm_environment(registered, arm), values),
            paths=paths,
            limits=_limits(registered),
            requests=Requests(
                api=workload.api,
                prompts=self.suite.prompts,
                max_tokens=workload.max_tokens,
                seed=workload.seed,
                ignore_eos=False,
            ),
            engine=self.vocabulary,
        )

    def _leg_files(self, leg: LegScript, order: WorkOrder) -> dict[str, bytes]:
        started = LegStarted(
            leg=leg.name, order_sha256=sha256_hex(order.canonical()), pid=50, start_ticks=9, boot_id=BOOT,
            wall_ns=WALL_NS, mono_ns=leg.base_ns,
        )  # fmt: skip
        end_ns = leg.base_ns + 900_000_000_000
        postflight = Postflight(
            stop_signal_mono_ns=end_ns - 5, ended_mono_ns=end_ns - 2, exit_status=0, killed=(), processes_left=(),
            listeners_left=(), shared_memory_left=(), log_bytes=len(leg.log), log_sha256=sha256_hex(leg.log),
        )  # fmt: skip
        completed = sum(row.ended == "complete" for row in leg.rows)
        problems = () if leg.exit_cause is StopCause.COMPLETED else ("it broke",)
        leg_exit = LegExit(
            leg=leg.name, cause=leg.exit_cause, problems=problems, rows_completed=completed, wall_ns=WALL_NS,
            mono_ns=end_ns,
        )  # fmt: skip
        sampled = {} if leg.telemetry is None else {"telemetry.jsonl": leg.telemetry}
        return sampled | {
            "order.json": order.canonical(),
            "LEG_STARTED.json": started.canonical(),
            "process.json": _process(leg, order).canonical(),
            "maps.txt": leg.maps,
            "server.log": leg.log,
            "metrics-before.prom": _prometheus(leg.before, order),
            "metrics-after.prom": _prometheus(leg.after, order),
            "postflight.json": postflight.canonical(),
            "exit.json": leg_exit.canonical(),
            "leg.log": b"",
        }


def json_edit(change: Callable[[dict[str, object]], None]) -> Edit:
    """An edit of a canonical JSON document in place."""

    def edit(data: bytes) -> bytes:
        value = json.loads(data)
        change(value)
        return canonical_json(value)

    return edit


def _start_paths(leg: LegScript) -> StartPaths:
    scratch = f"/scratch/{RUN_NAME}/{leg.name}"
    return StartPaths(
        leg=f"/runs/{RUN_NAME}/data/legs/{leg.folder}",
        scratch=scratch,
        cache=f"{scratch}/cache",
        temporary=f"{scratch}/tmp",
        home=f"{scratch}/home",
        working=f"{scratch}/cwd",
    )


def _limits(registered: Preregistration) -> Limits:
    service = registered.service
    return Limits(
        ready_timeout_s=service.ready.timeout_s,
        stop_timeout_s=service.stop.timeout_s,
        request_timeout_s=registered.workload.request_timeout_s,
        log_limit_bytes=service.log_limit_mib << 20,
        response_limit_bytes=1 << 28,
        silence_s=10,
    )


def _merge(document: dict[str, object], changes: dict[str, object]) -> dict[str, object]:
    result = dict(document)
    for key, value in changes.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and key != "treatment":
            result[key] = _merge(before, value)
        else:
            result[key] = value
    return result


def _text(token: int) -> str:
    return f" t{token}"


def _leg_events(legs: list[LegScript]) -> list[tuple[Event, str | None]]:
    events: list[tuple[Event, str | None]] = [(Event.PREFLIGHT_RECORDED, None)]
    for leg in legs:
        events.append((Event.LEG_STARTED, leg.name))
        if leg.exit_cause is StopCause.COMPLETED:
            events.append((Event.LEG_CLOSED, leg.name))
    return events


def _phase_event(has_stopped: bool) -> Event:
    return Event.PHASE_STOPPED if has_stopped else Event.PHASE_ANSWERED


def _counters(rows: list[RowScript], size: int) -> dict[str, Counted]:
    tokens = sum(len(row.ids) for row in rows)
    rounds = sum(len(row.steps()) - 1 for row in rows)
    accepted = tokens - len(rows) - rounds
    speculates = size > 1
    return {
        "prompt_tokens": sum(len(row.prompt_ids) for row in rows),
        "generation_tokens": tokens,
        "requests_succeeded": len(rows),
        "preemptions": 0,
        "prefix_cache_queries": 0,
        "prefix_cache_hits": 0,
        "request_decode_time_sum": 0.5 * len(rows),
        "drafts": rounds if speculates else None,
        "draft_tokens": rounds * DRAFTED if speculates else None,
        "accepted_tokens": accepted if speculates else None,
        "accepted_per_position": [accepted, 0, 0, 0] if speculates else None,
        "process_start_time": 1_800_000_000.5,
        "requests_running": 0,
        "requests_waiting": 0,
    }


def _prometheus(counters: dict[str, Counted], order: WorkOrder) -> bytes:
    labels = f'engine="0",model_name="labctl-{order.nonce}"'
    names = VOCABULARY.counters.model_dump()
    lines = []
    for field_name, value in counters.items():
        sample = names[field_name]
        kind = "histogram" if sample.endswith("_sum") else "counter" if sample.endswith("_total") else "gauge"
        family = sample.removesuffix("_total").removesuffix("_sum")
        lines += [f"# HELP {family} x", f"# TYPE {family} {kind}"]
        match value:
            case None:
                del lines[-2:]
            case list():
                lines += [f'{sample}{{{labels},position="{at}"}} {float(one)}' for at, one in enumerate(value)]
            case dict():
                told = ",".join(f'{name}="{one}"' for name, one in value.items())
                lines.append(f"{sample}{{{labels},{told}}} 1.0")
            case _ if field_name == "requests_succeeded":
                lines += [f'{sample}{{{labels},finished_reason="{why}"}} {n}' for why, n in _endings(value)]
            case _ if field_name == "process_start_time":
                lines.append(f"{sample} {value}")
            case _:
                lines.append(f"{sample}{{{labels}}} {float(value)}")
    return ("\n".join(lines) + "\n").encode()


def _endings(total: float) -> list[tuple[str, float]]:
    return [("stop", 0.0), ("length", float(total)), ("abort", 0.0), ("error", 0.0)]


def _process(leg: LegScript, order: WorkOrder) -> ProcessRecord:
    root = ProcessSeen(
        pid=60,
        parent_pid=50,
        start_ticks=10,
        executable="/opt/python",
        argv=leg.observed_argv(order.argv),
        environment=leg.observed_environment(order.environment),
        environment_other=(),
    )
    listener = Listener(address="0100007F:4650", inode=77, owner_pids=(60,))
    readiness = Readiness(
        process_started_mono_ns=leg.base_ns + 10,
        ready_mono_ns=leg.base_ns + 1000,
        attempts=3,
        version_body=json.dumps({"version": "reference-1"}),
        models_body="{}",
        served_model=f"labctl-{order.nonce}",
    )
    return ProcessRecord(
        root=root, tree=(), listeners=(listener,), listeners_after=(listener,), roots_after=(10,), readiness=readiness
    )


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _events(row: RowScript, model: str, api: Api) -> list[bytes]:
    head: dict[str, object] = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": row.model or model}
    steps = row.steps()
    events = []
    for number, ids in enumerate(steps):
        text = "".join(map(_text, ids))
        said = {"text": text} if api is Api.COMPLETIONS else {"delta": {"content": text}}
        choice: dict[str, object] = {"index": 0, **said, "logprobs": None, "token_ids": ids}
        choice["finish_reason"] = row.finish if number == len(steps) - 1 else None
        if number == 0:
            choice["prompt_token_ids"] = row.prompt_ids
        events.append(head | {"choices": [choice]})
    usage: dict[str, object] = {"prompt_tokens": len(row.prompt_ids), "completion_tokens": len(row.ids)}
    usage["total_tokens"] = len(row.prompt_ids) + len(row.ids)
    if row.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": row.cached_tokens}
    events.append(head | {"choices": [], "usage": usage})
    bodies = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    return [*bodies, b"data: [DONE]\n\n"]


def _portions(row: RowScript, model: str, api: Api) -> list[bytes]:
    """What each read delivers."""
    bodies = _events(row, model, api)
    if row.edit_body is not None:
        bodies = [row.edit_body(b"".join(bodies))]
    portions = [HEAD, *map(_chunk, bodies[:-1]), _chunk(bodies[-1]) + b"0\r\n\r\n"]
    if row.edit_response is not None:
        portions = [row.edit_response(b"".join(portions))]
    if row.merge_reads:
        portions = [portions[0] + portions[1], b"".join(portions[2:5]), *portions[5:]]
    return [portion for portion in portions if portion]


def _times_ns(row: RowScript, start_ns: int, count: int) -> list[int]:
    """When each read arrives: the head with the first token, so start + 5 ms + gap x event, and what it pauses."""
    times_ns = [start_ns + 5_000_000 + row.gap_ns * max(place - 1, 0) for place in range(count)]
    if row.pause is None:
        return times_ns
    after, pause_ns = row.pause
    return [at + (pause_ns - row.gap_ns if place > after else 0) for place, at in enumerate(times_ns)]


def _wire(leg: LegScript, order: WorkOrder, numbered: tuple[int, RowScript]) -> tuple[bytes, list[Line]]:
    number, row = numbered
    model = f"labctl-{order.nonce}"
    prompt = order.requests.prompts[number - 1]
    asked = Generation(model=model, max_tokens=order.requests.max_tokens, seed=order.requests.seed)
    messages = [message.model_dump(mode="json") for message in prompt.messages or ()]
    body = request_body(asked, prompt.text or messages)
    path = VOCABULARY.endpoints.chat if messages else VOCABULARY.endpoints.completions
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{order.port}\r\nContent-Length: {len(body)}\r\n\r\n"
    start_ns = leg.base_ns + number * 10_000_000_000
    portions = _portions(row, model, order.requests.api)
    times_ns = _times_ns(row, start_ns, len(portions))
    end_ns = times_ns[-1] if times_ns else start_ns + 5_000_000
    reads = [
        Read(kernel_ns=at + WALL_NS if row.has_kernel_stamps else None, mono_ns=at + 20_000, length=len(portion))
        for at, portion in zip(times_ns, portions, strict=True)
    ]
    sent = [
        Sent(mono_before_ns=at, mono_after_ns=at + 10, realtime_ns=at + WALL_NS, bytes_latin1=data.decode("latin-1"))
        for at, data in ((start_ns + 2_000_000, head.encode()), (start_ns + 2_100_000, body))
    ]
    lines: list[Line] = [
        RowOpened(
            row=number, prompt_id=row.prompt_id, host="127.0.0.1", port=order.port, stamps="kernel_software_rx",
            clock_offset_ns=WALL_NS, boottime_minus_monotonic_ns=0,
        ),
        ConnectStarted(mono_ns=start_ns, realtime_ns=start_ns + WALL_NS),
        Connected(
            mono_ns=start_ns + 50_000, realtime_ns=start_ns + 50_000 + WALL_NS, local_port=40_000 + number,
            peer_address="127.0.0.1", peer_port=order.port,
        ),
        *sent,
        *reads,
        RowClosed(
            mono_ns=end_ns + 100_000, clock_offset_ns=WALL_NS + row.clock_step_ns,
            boottime_minus_monotonic_ns=row.suspended_ns, ended=row.ended, detail=None,
            http_status=200 if row.ended == "complete" else None, peer_closed=True, gc_collections=0,
        ),
    ]  # fmt: skip
    return b"".join(portions), lines
