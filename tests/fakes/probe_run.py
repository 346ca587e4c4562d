"""A synthetic probe of four ranks on CPU cards, sealed by the real `seal_run`.

```
run = ProbeRun()
run.ranks[2].lines = run.ranks[2].lines[:3]      # rank 2 came no further than pg-initialised
run.ranks[2].exit["exit_status"] = -9
sealed = run.seal(tmp_path)
```
"""

import hashlib
import struct
from dataclasses import dataclass, field

from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from tests.fakes.card_run import CardRun, card_document, discovery_document, selecting, torch_uuid

Doc = dict[str, object]

RANKS, ELEMENTS, PERIOD = 4, 1000, 251
BACKENDS = {"cpu": "gloo", "nvidia": "nccl", "intel": "xccl"}
INPUTS = {"component-run_probe.py": b"print()\n", "host.yaml": b"labctl: 1\n"}
STAGES = (
    "import-done", "device-set", "pg-initialised", "tensor-allocated", "all_reduce-start", "all_reduce-done",
    "verified", "teardown-done",
)  # fmt: skip


def elements_sha256(factor: int, shift: int) -> str:
    """The digest of `factor * (1 + (i + shift) % 251)` as float32."""
    values = [factor * (1 + (place + shift) % PERIOD) for place in range(ELEMENTS)]
    return hashlib.sha256(struct.pack(f"<{ELEMENTS}f", *values)).hexdigest()


@dataclass
class RankScript:
    """What one rank writes, and how it ends."""

    number: int
    lines: list[Doc] = field(default_factory=list)
    exit: Doc = field(default_factory=dict)
    log: bytes = b"hello\n"

    def line(self, stage: str, detail: Doc, nonce: str) -> Doc:
        """One stage."""
        place = STAGES.index(stage) if stage in STAGES else len(STAGES)
        return {
            "schema": "labctl/probe-stage/1",
            "rank": self.number,
            "nonce": nonce,
            "pid": 100 + self.number,
            "wall_ns": 1,
            "mono_ns": 1_000_000 + place,
            "stage": stage,
            "detail": detail,
        }


@dataclass
class ProbeRun(CardRun):
    """Four ranks; `spoil` functions run after everything is made and before it is written."""

    inputs: dict[str, bytes] = field(default_factory=lambda: dict(INPUTS))
    devices: Doc = field(
        default_factory=lambda: discovery_document([card_document(index) for index in range(RANKS)], {})
    )
    ranks: list[RankScript] = field(default_factory=lambda: [RankScript(number) for number in range(RANKS)])
    reached: dict[int, int] = field(default_factory=dict)
    """How many stages a rank reaches; all where it is not named."""
    last_words: dict[int, Doc] = field(default_factory=dict)
    """Why a rank could not go on."""
    details: dict[tuple[int, str], Doc] = field(default_factory=dict)
    """Changes to what a rank says of a stage."""
    exits: dict[int, Doc] = field(default_factory=dict)
    """Changes to how a rank ended."""
    vendor: str = "cpu"
    """Who makes the cards."""

    def __post_init__(self) -> None:
        if self.vendor != "cpu":
            cards = [card_document(index, vendor=self.vendor) for index in range(RANKS)]
            self.devices = discovery_document(cards, {}, self.vendor)

    def preregistration(self) -> dict[str, object]:
        """What the campaign registers."""
        return {
            "labctl": 1,
            "kind": "probe",
            "id": "quick-probe",
            "title": "Four ranks",
            "author": "Lab One <lab@example.org>",
            "question": "Do the ranks come through one all-reduce?",
            "class": "exploratory",
            "host": "hosts/bench.yaml",
            "interpreter": "serving",
            "cards": {"vendor": self.vendor, "count": RANKS, "identities": "discover"},
            "ranks": RANKS,
            "backend": BACKENDS[self.vendor],
            "collective": {
                "operation": "all_reduce",
                "dtype": "float32",
                "elements": ELEMENTS,
                "expected": "sum_of_ranks",
            },
            "timeouts": {"stage_s": 30, "total_s": 120},
            "reviews": {"required": 0, "signatures": "none"},
            "authorizes": ["probe_run"],
            "excluded": ["endpoint_run", "retry"],
        }

    def leg_files(self, index: int, order_head: dict[str, object]) -> dict[str, bytes]:
        """The files of the one leg."""
        order = self._order(order_head)
        order_bytes = canonical_json(order)
        files = {"order.json": order_bytes, "postflight.json": canonical_json(self._postflight())}
        order_sha256 = sha256_hex(self._edited(f"legs/{index:02d}-probe/order.json", order_bytes))
        for rank in self.ranks:
            lines = self._lines(rank, order, order_sha256)
            files[f"rank-{rank.number}.jsonl"] = b"".join(map(canonical_json, lines))
            files[f"rank-{rank.number}.log"] = rank.log
            files[f"rank-{rank.number}.exit.json"] = canonical_json(self._exit(rank, order))
        return files

    def _order(self, head: dict[str, object]) -> dict[str, object]:
        said = self.preregistration()
        environments = [
            {
                "RANK": str(number),
                "LOCAL_RANK": str(number),
                "WORLD_SIZE": str(RANKS),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29500",
                **selecting(card_document(number, vendor=self.vendor)),
            }
            for number in range(RANKS)
        ]
        inputs, paths = head["inputs"], head["paths"]
        assert isinstance(inputs, dict)
        assert isinstance(paths, dict)
        return {
            "schema": "labctl/probe-order/1",
            "kind": "probe",
            **head,
            "inputs": {role: digest for role, digest in inputs.items() if role.startswith("component-")},
            "argv": [
                *("/opt/python", "-I", "-u", f"{head['code']}/labctl/component/run_probe.py"),
                f"{paths['leg']}/order.json",
            ],
            "address": "127.0.0.1",
            "port": 29500,
            "ranks": RANKS,
            "backend": said["backend"],
            "cards": [card_document(number, vendor=self.vendor) for number in range(RANKS)],
            "collective": said["collective"],
            "timeouts": said["timeouts"],
            "rank_environment": environments,
        }

    def _lines(self, rank: RankScript, order: dict[str, object], order_sha256: str) -> list[Doc]:
        nonce = str(order["nonce"])
        shift = int(nonce[:16], 16) % PERIOD
        details: dict[str, Doc] = {
            "import-done": {
                "torch": "2.13.0+cpu",
                "python": "CPython 3.11.9",
                "order_sha256": order_sha256,
                "code_sha256": order["inputs"],
            },
            "device-set": {
                "device": "cpu",
                "visible": 1,
                "name": "cpu",
                "uuid": torch_uuid(self.vendor, rank.number),
                "cpus": [rank.number],
            },
            "pg-initialised": {"backend": BACKENDS[self.vendor], "world_size": RANKS, "group_rank": rank.number},
            "tensor-allocated": {
                "dtype": "float32",
                "elements": ELEMENTS,
                "data_ptr": 4096,
                "sha256": elements_sha256(rank.number + 1, shift),
                "shift": shift,
            },
            "verified": {"sha256": elements_sha256(10, shift), "data_ptr": 4096},
        }
        reached = STAGES[: self.reached.get(rank.number, len(STAGES))]
        lines = []
        for stage in reached:
            detail = details.get(stage, {}) | self.details.get((rank.number, stage), {})
            lines.append(rank.line(stage, detail, nonce))
        if rank.number in self.last_words:
            lines.append(rank.line("failed", self.last_words[rank.number], nonce))
        return lines

    def _exit(self, rank: RankScript, order: dict[str, object]) -> Doc:
        argv, environment, own = order["argv"], order["environment"], order["rank_environment"]
        assert isinstance(argv, list)
        assert isinstance(environment, dict)
        assert isinstance(own, list)
        seen = {
            "pid": 100 + rank.number,
            "parent_pid": 50,
            "start_ticks": 10,
            "executable": "/opt/python",
            "argv": [*argv, str(rank.number)],
            "environment": environment | own[rank.number],
            "environment_other": [],
        }
        return {
            "schema": "labctl/rank-exit/1",
            "rank": rank.number,
            "leg": "probe",
            "pid": 100 + rank.number,
            "start_ticks": 10,
            "seen": seen,
            "started_mono_ns": 1,
            "ended_mono_ns": 2_000_000,
            "exit_status": 0,
            "timed_out": False,
            "killed": False,
            "visible": discovery_document([card_document(rank.number, 0, self.vendor)], {}, self.vendor),
            "log_bytes": len(rank.log),
            "log_sha256": sha256_hex(rank.log),
            **self.exits.get(rank.number, {}),
        }

    def _postflight(self) -> Doc:
        cards = [card_document(number, 0, self.vendor) for number in range(RANKS)]
        return {
            "schema": "labctl/probe-postflight/1",
            "ended_mono_ns": 3_000_000,
            "timed_out": False,
            "processes_left": [],
            "shared_memory_left": [],
            "cards": [{"before": card, "after": card, "problems": []} for card in cards],
        }
