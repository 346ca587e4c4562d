"""How far every rank of a probe came; what a rank wrote counts only where what can be computed bears it out."""

import hashlib
import struct
from collections.abc import Iterator

from . import card_gates
from .card_reading import CardRun, CardRunLeg
from .gate_findings import Gate
from .sealed_files import Doc, sha256

STAGES = {
    "import-done": "harness_or_import_failure",
    "device-set": "device_setup_failure",
    "pg-initialised": "process_group_init_failure",
    "tensor-allocated": "tensor_setup_failure",
    "all_reduce-start": "pre_collective_failure",
    "all_reduce-done": "collective_stage_failure",
    "verified": "verification_failure",
    "teardown-done": "teardown_failure",
}
KINDS = ("identity", "devices", "harness", "stages")
LETTERS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}
PERIOD = 251


def judge(run: CardRun) -> tuple[list[Gate], Doc]:
    """Every gate, and how far the probe came."""
    gates = {kind: Gate(kind, kind) for kind in KINDS}
    count, leg = run.prereg["ranks"], next(iter(run.card_legs), None)
    folder = f"{run.marker['run_dir']}/data/legs/{leg.folder if leg else '01-probe'}"
    told: Doc = {"stage_class": "harness_failure", "ranks": count, "clean_teardowns": 0, "artifact_folder": folder}
    selected = card_gates.discovered(gates["devices"], run)
    order = leg.records.get("order.json") if leg else None
    if leg is None or order is None:
        for gate in gates.values():
            gate.knows(None, "probe", "a leg with an order")
        return list(gates.values()), told
    _identity(gates["identity"], run, leg, order)
    _cards(gates["devices"], leg, order, selected)
    readable = [rank for rank in range(count) if _is_readable(gates["harness"], leg, rank)]
    _harness(gates["harness"], leg, order, readable)
    proved = {rank: _proved(gates["stages"], run, leg, rank) for rank in readable}
    gates["stages"].knows(readable or None, "probe", "a rank whose records can be read")
    statuses = {rank: _status(leg, rank) for rank in readable}
    outlived = leg.records.get("postflight.json", {}).get("outlived", [])
    gates["stages"].same("probe", "processes that ran on after the ranks", [], outlived)
    is_sound = not gates["harness"].misses and not gates["harness"].gaps
    clean = [rank for rank in readable if is_sound and len(proved[rank]) == len(STAGES) and statuses[rank] == 0]
    gates["stages"].note("probe", "ranks", clean_teardowns=len(clean))
    told["clean_teardowns"] = len(clean)
    if is_sound:
        missed = [name for stage, name in STAGES.items() if any(stage not in one for one in proved.values())]
        is_clean = all(status == 0 for status in statuses.values()) and not outlived
        told["stage_class"] = missed[0] if missed else "pass" if is_clean else "process_exit_failure"
    return list(gates.values()), told


def _status(leg: CardRunLeg, rank: int) -> int | None:
    ended = leg.records[f"rank-{rank}.exit.json"]
    return None if ended["timed_out"] else ended["exit_status"]


def _is_readable(gate: Gate, leg: CardRunLeg, rank: int) -> bool:
    names = [f"rank-{rank}.{kind}" for kind in ("jsonl", "exit.json", "log")]
    faults = [f"{name} is not there" for name in names if name not in leg.files]
    faults += [fault for name in names for fault in leg.faults.get(name, [])]
    lines, ended = leg.lines.get(names[0]), leg.records.get(names[1])
    gate.same(f"rank {rank}", "faults of its files", [], faults)
    return lines is not None and ended is not None and not faults


def _harness(gate: Gate, leg: CardRunLeg, order: Doc, readable: list[int]) -> None:
    gate.same("probe", "the leg", "completed", leg.records.get("exit.json", {}).get("cause"))
    after = leg.records.get("postflight.json")
    if gate.knows(after, "probe", "a record of what was left"):
        gate.same("probe", "what was left", ([], []), (after["processes_left"], after["shared_memory_left"]))
        gate.same(
            "probe", "cards afterwards", [], [fault for state in after["cards"] for fault in _changed(leg, state)]
        )
    ends = [one for name, one in leg.records.items() if name.startswith("rank-") and "exit_status" in one]
    if after is not None and "exit.json" in leg.records:
        clean = sum(one["exit_status"] == 0 for one in ends)
        gate.same("probe", "ranks that exited with 0", clean, leg.records["exit.json"]["rows_completed"])
    for rank in readable:
        lines, ended, log = (
            leg.lines[f"rank-{rank}.jsonl"],
            leg.records[f"rank-{rank}.exit.json"],
            leg.files[f"rank-{rank}.log"],
        )
        where, stages = f"rank {rank}", [line["stage"] for line in lines if line["stage"] != "failed"]
        gate.same(
            where, "rank, log", (rank, len(log), sha256(log)), (ended["rank"], ended["log_bytes"], ended["log_sha256"])
        )
        gate.same(where, "stages once and in order", [*STAGES][: len(stages)], stages)
        told = {(line["rank"], line["nonce"]) for line in lines} - {(rank, order["nonce"])}
        gate.same(where, "lines of another rank or nonce", set(), told)
        gate.same(where, "processes", min(1, len(lines)), len({line["pid"] for line in lines}))
        gate.same(where, "last words at the end", [], [line for line in lines[:-1] if line["stage"] == "failed"])
        stamps = [line["mono_ns"] for line in lines]
        gate.same(where, "times", sorted(stamps), stamps)


def _changed(leg: CardRunLeg, state: Doc) -> list[str]:
    """In what a card that was looked at again is not a rank's, or not as it was."""
    ends = [one for name, one in leg.records.items() if name.startswith("rank-") and "visible" in one]
    seen = next((one["visible"] for one in ends if one["visible"]["cards"] == [state["before"]]), None)
    return ["no card of a rank"] if seen is None else card_gates.afterwards(state, seen)


def _proved(gate: Gate, run: CardRun, leg: CardRunLeg, rank: int) -> list[str]:
    """The stages that a rank proved, up to the first that it did not; what is lacking fails the gate."""
    where, lines = f"rank {rank}", {line["stage"]: line for line in leg.lines[f"rank-{rank}.jsonl"]}
    proved: list[str] = []
    is_sound = True
    for stage in STAGES:
        if stage not in lines:
            failure = lines.get("failed", {}).get("detail", {})
            gate.same(where, stage, "proved", f"not: {failure.get('exception')}: {failure.get('message')}"[:200])
            return proved
        for what, wanted, found in _facts(run, leg, lines[stage], rank):
            gate.same(where, f"{stage}: {what}", wanted, found)
            is_sound = is_sound and wanted == found
        proved += [stage] if is_sound else []
    if len(proved) == len(STAGES):
        gate.same(where, "exit status", 0, _status(leg, rank))
    return proved


def _facts(run: CardRun, leg: CardRunLeg, line: Doc, rank: int) -> Iterator[tuple[str, object, object]]:
    said, detail, count = run.prereg, line["detail"], run.prereg["ranks"]
    asked, nonce = said["collective"], leg.records["order.json"]["nonce"]
    shift = int(nonce[:16], 16) % PERIOD
    if line["stage"] == "device-set" and said["cards"]["vendor"] != "cpu":
        yield "visible devices", 1, detail["visible"]
    if line["stage"] == "pg-initialised":
        told = (detail["backend"], detail["world_size"], detail["group_rank"])
        yield "backend, ranks, rank", (said["backend"], count, rank), told
    if line["stage"] == "tensor-allocated":
        wanted = [asked["dtype"], asked["elements"], shift, _digest(asked, rank + 1, shift)]
        yield "tensor", wanted, [detail[key] for key in ("dtype", "elements", "shift", "sha256")]
    if line["stage"] == "verified":
        yield "result", _digest(asked, count * (count + 1) // 2, shift), detail["sha256"]


def _digest(asked: Doc, factor: int, shift: int) -> str:
    """The digest of elements `factor * (1 + (i + shift) % 251)`."""
    digest, letter = hashlib.sha256(), LETTERS[asked["dtype"]]
    period = b"".join(struct.pack(f"<{letter}", factor * (1 + (at + shift) % PERIOD)) for at in range(PERIOD))
    size = asked["elements"] * struct.calcsize(letter)
    whole = period * 4096
    for _ in range(size // len(whole)):
        digest.update(whole)
    digest.update(whole[: size % len(whole)])
    return digest.hexdigest()


def _identity(gate: Gate, run: CardRun, leg: CardRunLeg, order: Doc) -> None:
    said, host = run.prereg, run.marker["host"]
    wanted = [run.digests["packet.json"], run.digests["marker.copy.json"], "probe", 1]
    wanted += [card_gates.nonce_of(run, "probe"), run.packet["kind"], host["machine_id_sha256"], host["boot_id"]]
    keys = ["packet_sha256", "marker_sha256", "leg", "index", "nonce", "packet_kind", "machine_id_sha256", "boot_id"]
    gate.same("probe", "what the order names", wanted, [order[key] for key in keys])
    keys = ["ranks", "backend", "collective", "timeouts"]
    gate.same("probe", "work", [said[key] for key in keys], [order[key] for key in keys])
    gate.same("probe", "cards", said["cards"], order["selection"])
    wanted_limits = (card_gates.limits_of(said["timeouts"]["total_s"], said), run.packet["host"].get("devices"))
    gate.same("probe", "limits", wanted_limits, card_gates.limits(run, order))
    folder = f"{run.marker['run_dir']}/data/legs/{leg.folder}"
    gate.holds("probe", f"an order for {folder}", is_met=f"/{order['paths']['leg']}".endswith(f"/{folder}"))
    gate.same("probe", "exported files", card_gates.exported(run), order["inputs"])
    environment = card_gates.environment_of(run, order, said["environment"])
    gate.same("probe", "environment", environment, order["environment"])
    program = f"{order['code']}/labctl/component/run_probe.py"
    ends = [order["interpreter"], "-I", program, f"{order['paths']['leg']}/order.json"]
    gate.same("probe", "interpreter, program, order", ends, [*order["argv"][:2], *order["argv"][-2:]])
    for rank in range(said["ranks"]):
        _process(gate, leg, order, rank)


def _process(gate: Gate, leg: CardRunLeg, order: Doc, rank: int) -> None:
    where, lines = f"rank {rank}", leg.lines.get(f"rank-{rank}.jsonl", [])
    for line in (line for line in lines if line.get("stage") == "import-done"):
        told = (line["detail"]["order_sha256"], line["detail"]["code_sha256"])
        gate.same(where, "order and code as hashed", (leg.sha256_of("order.json"), order["inputs"]), told)
    ended = leg.records.get(f"rank-{rank}.exit.json")
    if ended is None:
        return
    if lines:
        gate.same(where, "process", ended["pid"], lines[0]["pid"])
    seen: Doc | None = ended["seen"]
    if seen is not None and rank < len(order["rank_environment"]):
        wanted: tuple[object, ...] = (
            [*order["argv"], str(rank)],
            {**order["environment"], **order["rank_environment"][rank]},
            [],
        )
        gate.same(
            where, "arguments, environment", wanted, (seen["argv"], seen["environment"], seen["environment_other"])
        )


def _cards(gate: Gate, leg: CardRunLeg, order: Doc, selected: list[Doc]) -> None:
    gate.same("probe", "cards of the order", selected, order["cards"])
    for rank, (card, own) in enumerate(zip(order["cards"], order["rank_environment"], strict=False)):
        wanted = card_gates.selecting(card)
        gate.same(f"rank {rank}", "what selects the card", wanted, {name: own.get(name) for name in wanted})
    for rank, card in enumerate(order["cards"]):
        where, ended = f"rank {rank}", leg.records.get(f"rank-{rank}.exit.json")
        if ended and "visible" in ended:
            card_gates.only_visible(gate, where, ended["visible"], card)
        for line in (one for one in leg.lines.get(f"rank-{rank}.jsonl", []) if one.get("stage") == "device-set"):
            card_gates.in_torch(gate, where, card, line["detail"])
