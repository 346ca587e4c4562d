"""The gates of runs on cards that look at who ran and on which card; each is given the gate to fill, run and leg."""

import re
from itertools import pairwise
from uuid import UUID

from .card_reading import CardRun, CardRunLeg
from .gate_findings import Gate
from .run_reading import FIXED
from .sealed_files import Doc, sha256

TORCH_DEVICES = {"cpu": "cpu", "nvidia": "cuda:0", "intel": "xpu:0"}
WARNING = re.compile(rb"^.*:[0-9]+: ([A-Za-z_]+): (.*)$")
SHOWS = "labctl.component.warning_log.WarningLog.show"
WORK = ("checkpoint", "arms", "cases", "repeats", "seed", "dimensions", "buffers", "boundaries", "caches", "microcases")
PARTS = ("order.json", "process.json", "pre-import.json", "component.json", "discovery.json", "postflight.json")


def nonce_of(run: CardRun, leg: str) -> str:
    """The nonce of a leg, which follows from the marker's."""
    return sha256(f"{run.marker['nonce']}:{leg}".encode())[:32]


def exported(run: CardRun) -> Doc:
    """What the worker side must be: digests by role."""
    files = {one["role"]: one["sha256"] for one in run.packet["files"]}
    return {role: one for role, one in files.items() if role == "worker.py" or role.startswith(("component-", "file-"))}


def selecting(card: Doc) -> dict[str, str]:
    """What makes a process see one card alone."""
    if card["vendor"] == "nvidia":
        return {"CUDA_VISIBLE_DEVICES": card["identity"]}
    if card["vendor"] == "intel":
        return {"ZE_AFFINITY_MASK": str(card["index"]), "ONEAPI_DEVICE_SELECTOR": "level_zero:0"}
    return {}


def environment_of(run: CardRun, order: Doc, own: Doc) -> dict[str, str]:
    """The whole environment that a process must have had."""
    home, seen = order["paths"]["home"], order["environment"]
    private = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "XDG_CONFIG_HOME": f"{home}/.config"}
    private |= {"PYTHONPYCACHEPREFIX": f"{home}/.pycache", "TMPDIR": order["paths"]["temporary"]}
    passed = {name: seen[name] for name in run.packet["host"]["environment_passed"] if name in seen}
    return FIXED | private | passed | own


def limits_of(time_s: int, said: Doc) -> list[int | None]:
    """Registered bounds on seconds, bytes printed and bytes of memory."""
    memory = said.get("memory_mib")
    return [time_s, said["log_limit_mib"] << 20, memory << 20 if memory else None]


def limits(run: CardRun, order: Doc) -> tuple[list[int | None], Doc | None]:
    """The bounds of an order, and how cards were looked at, where the host profile says how."""
    told = [order["limits"][key] for key in ("timeout_s", "log_limit_bytes", "memory_limit_bytes")]
    return told, order["devices"] if run.packet["host"].get("devices") else None


def identity(gate: Gate, run: CardRun, leg: CardRunLeg) -> None:
    """What ran on a card is what was frozen."""
    order, process, seal = (leg.records.get(name) for name in PARTS[:3])
    root = (process or {}).get("root")
    if order is None or process is None or seal is None or root is None:
        gate.knows(None, leg.name, "order, process or pre-import seal")
        return
    worker, name, host = run.prereg["worker"], leg.name, run.marker["host"]
    gate.same(
        name,
        "machine, boot",
        (host["machine_id_sha256"], host["boot_id"]),
        (order["machine_id_sha256"], order["boot_id"]),
    )
    gate.same(name, "exported files", [exported(run)] * 2, [order["inputs"], seal["code_sha256"]])
    wanted = environment_of(run, order, {**worker["environment"], **selecting(order["card"])})
    told = (order["environment"], seal["environment"], root["environment"], root["environment_other"])
    gate.same(name, "environment", (wanted, wanted, wanted, []), told)
    gate.same(name, "work", {key: run.prereg[key] for key in WORK}, order["work"])
    gate.same(
        name,
        "cards, limits",
        (run.prereg["cards"], limits_of(worker["timeout_s"], worker), run.packet["host"].get("devices")),
        (order["selection"], *limits(run, order)),
    )
    program = f"{order['code']}/labctl/component/run_worker.py"
    ends = [order["interpreter"], "-I", program, f"{order['paths']['leg']}/order.json"]
    gate.same(name, "interpreter, program, order", ends, [*order["argv"][:2], *order["argv"][-2:]])
    gate.same(name, "arguments as seen", [order["argv"]] * 2, [seal["argv"], root["argv"]])
    said = (run.packet["interpreter"]["resolved_sha256"], 1)
    gate.same(name, "interpreter, isolation", said, (seal["executable_sha256"], seal["flags"].get("isolated")))
    worker_seen = (seal["pid"], seal["start_ticks"], seal["boot_id"], seal["executable"])
    gate.same(name, "process", worker_seen, (root["pid"], root["start_ticks"], order["boot_id"], root["executable"]))
    gate.same(name, "other processes", [], process["tree"])
    after = leg.records.get("postflight.json")
    if after:
        keys = ("exit_status", "timed_out", "killed", "processes_left", "shared_memory_left")
        gate.same(name, "how it ended, what was left", [0, False, [], [], []], [after[key] for key in keys])
        gate.same(name, "processes that ran on after the worker", [], after.get("outlived", []))


def in_turn(gate: Gate, run: CardRun) -> None:
    """Legs run one after the other."""
    spans = [(leg.records.get("LEG_STARTED.json"), leg.records.get("exit.json")) for leg in run.card_legs]
    stamps = [(one["mono_ns"], two["mono_ns"]) for one, two in spans if one and two]
    for earlier, later in pairwise(stamps):
        gate.holds("run", f"a leg that starts after {earlier[1]}: {later[0]}", is_met=later[0] > earlier[1])


def linkage(gate: Gate, run: CardRun, leg: CardRunLeg) -> None:
    """Marker, order, pre-import seal, rows and record name each other, in the order in which they came."""
    order, process, seal, record = (leg.records.get(name) for name in PARTS[:4])
    if order is None or seal is None or record is None:
        gate.knows(None, leg.name, "order, pre-import seal or record")
        return
    name, rows = leg.name, leg.lines.get("rows.jsonl", [])
    digests = (run.digests["packet.json"], run.digests["marker.copy.json"], name, nonce_of(run, name))
    for one in (order, seal):
        told = tuple(one[key] for key in ("packet_sha256", "marker_sha256", "leg", "nonce"))
        gate.same(name, "packet, marker, leg, nonce", digests, told)
    gate.same(name, "place, kind", (leg.index, run.packet["kind"]), (order["index"], order["packet_kind"]))
    folder = f"{run.marker['run_dir']}/data/legs/{leg.folder}"
    gate.holds(name, f"an order for {folder}", is_met=f"/{order['paths']['leg']}".endswith(f"/{folder}"))
    gate.same(name, "order", [leg.sha256_of("order.json")] * 2, [seal["order_sha256"], record["order_sha256"]])
    wanted = (leg.sha256_of("pre-import.json"), leg.sha256_of("rows.jsonl"), len(rows), name, seal["pid"])
    said = tuple(record[key] for key in ("pre_import_sha256", "rows_sha256", "rows", "leg", "pid"))
    gate.same(name, "seal, rows, leg, process of the record", wanted, said)
    ended = leg.records.get("exit.json") or {"rows_completed": None}
    gate.same(name, "rows that the leg counted", len(rows), ended["rows_completed"])
    gate.same(name, "ending", "completed", record["ending"]["kind"])
    early = [path for path in seal["mapped_files"] if "libtorch" in path] + ["torch"] * ("torch" in seal["modules"])
    gate.same(name, "torch before the seal", [], early)
    gate.same(name, "torch afterwards", record["versions"] is not None, b"libtorch" in leg.files.get("maps.txt", b""))
    _look(gate, leg, rows, process)
    _channels(gate, leg, record)


def _look(gate: Gate, leg: CardRunLeg, rows: list[Doc], process: Doc | None) -> None:
    started, after = leg.records.get("LEG_STARTED.json"), leg.records.get("postflight.json")
    if process is None or process["observed_mono_ns"] is None or started is None or after is None:
        gate.knows(None, leg.name, "a look at the worker while its tensors lived")
        return
    seal, record = leg.records["pre-import.json"], leg.records["component.json"]
    gate.same(leg.name, "pauses, rows by then", (1, len(rows)), (process["pauses"], process["rows_seen"]))
    stamps = [started["mono_ns"], process["started_mono_ns"], seal["mono_ns"], record["started_mono_ns"]]
    stamps += [row["ended_mono_ns"] for row in rows]
    stamps += [process["observed_mono_ns"], record["ended_mono_ns"], after["ended_mono_ns"]]
    gate.same(leg.name, "order of events", sorted(stamps), stamps)


def _channels(gate: Gate, leg: CardRunLeg, record: Doc) -> None:
    before, log, after = record["channels_before"], leg.files.get("worker.log", b""), leg.records.get("postflight.json")
    gate.same(leg.name, "where warnings and output went", before, record["channels_after"])
    gate.same(leg.name, "what shows warnings", SHOWS, (before or {}).get("shows_warnings"))
    if after:
        gate.same(leg.name, "log", (len(log), sha256(log)), (after["log_bytes"], after["log_sha256"]))
    matches = [found for line in log.split(b"\n") if (found := WARNING.match(line)) and b"Warning" in found[1]]
    logged = sorted((one[1].decode(), one[2].decode("utf-8", "replace")) for one in matches)
    told = [(one["category"], one["message"].split("\n")[0]) for one in record["warnings"]]
    gate.same(leg.name, "warnings in the log", sorted(one for one in told if "Warning" in one[0]), logged)


def discovered(gate: Gate, run: CardRun) -> list[Doc]:
    """The registered cards, from the discovery before any affinity."""
    found, cards = run.devices, run.prereg["cards"]
    if not gate.knows(found, "run", "a discovery of cards before any affinity"):
        return []
    told = (found["vendor"], found["filtered_by"], found["problems"])
    gate.same("run", "vendor, filters, problems of the discovery", (cards["vendor"], {}, []), told)
    there = {card["identity"]: card for card in found["cards"]}
    gate.same("run", "cards with an identity of their own", len(found["cards"]), len(there))
    wanted = [*there][: cards["count"]] if cards["identities"] == "discover" else cards["identities"]
    lacking = [one for one in wanted if one not in there]
    gate.same("run", "cards, and those that are not there", (cards["count"], []), (len(wanted), lacking))
    return [there[one] for one in wanted if one in there]


def devices(gate: Gate, run: CardRun, leg: CardRunLeg, selected: Doc | None) -> None:
    """A leg and its worker saw exactly its own card."""
    order, seal, record, filtered = (leg.records.get(PARTS[at]) for at in (0, 2, 3, 4))
    if order is None or seal is None or record is None or filtered is None or selected is None:
        gate.knows(None, leg.name, "what the leg or its worker saw of cards")
        return
    name, digests = leg.name, [leg.sha256_of("discovery.json"), sha256(run.files["host/devices.json"])]
    gate.same(name, "card of the order", (selected, leg.index - 1), (order["card"], order["card_index"]))
    gate.same(name, "discoveries", digests, [seal["discovery_sha256"], order["discovery_sha256"]])
    only_visible(gate, name, filtered, selected)
    if after := leg.records.get("postflight.json"):
        told = afterwards(after["card"], filtered) if after["card"] else ["no look at it"]
        gate.same(name, "the card afterwards", [], told)
    if not gate.knows(record["device"], name, "the card as torch shows it"):
        return
    torch = record["device"]
    gate.same(name, "device of torch", (TORCH_DEVICES[selected["vendor"]], 1), (torch["device"], torch["visible"]))
    if selected["vendor"] == "cpu":
        cpus = _cpus(selected["bus_id"])
        outside = (leg.records.get("process.json") or {}).get("cpus")
        gate.same(name, "CPUs of the worker", [cpus] * 3, [outside, seal["cpus"], torch["cpus"]])
    elif torch["uuid"] is not None:
        gate.same(name, "identity in torch", selected["identity"], _identity(selected["vendor"], torch["uuid"]))


def afterwards(state: Doc, filtered: Doc) -> list[str]:
    """In what a card is not the one that was seen before, or not as it was."""
    before, after, faults = state["before"], state["after"], [*state["problems"]]
    faults += ["another look before"] * (filtered["cards"] != [before])
    faults += ["another card"] * ((*_stable(before), before["index"]) != (*_stable(after), after["index"]))
    known = {one["pid"] for one in before["processes"]}
    clients = [one["pid"] for one in after["processes"] if one["role"] == "client" and one["pid"] not in known]
    return faults + [f"process {pid} on it" for pid in clients]


def only_visible(gate: Gate, where: str, filtered: Doc, selected: Doc) -> None:
    """Exactly the selected card was visible, by its stable names; alone it has the number 0."""
    gate.same(where, "vendor, problems", (selected["vendor"], []), (filtered["vendor"], filtered["problems"]))
    seen = [(*_stable(card), card["index"]) for card in filtered["cards"]]
    gate.same(where, "the only visible card", [(*_stable(selected), 0)], seen)


def in_torch(gate: Gate, where: str, selected: Doc, told: Doc) -> None:
    """What torch, or the kernel, shows a process of its card."""
    if selected["vendor"] == "cpu":
        gate.same(where, "CPUs", _cpus(selected["bus_id"]), told["cpus"])
    elif told["uuid"] is not None:
        gate.same(where, "identity in torch", selected["identity"], _identity(selected["vendor"], told["uuid"]))


def _stable(card: Doc) -> tuple[str, ...]:
    """What names a card for good; a process that sees its CPUs cannot know which share of them it is."""
    told = [str(card[name]) for name in ("identity", "bus_id", "drm_node")]
    return tuple(one.split("/")[0] if one.startswith("cpu:") else one for one in told)


def _cpus(text: str) -> list[int]:
    spans = [part.partition("-") for part in text.split(",")]
    return [cpu for low, _, high in spans for cpu in range(int(low), int(high or low) + 1)]


def _identity(vendor: str, uuid: str) -> str:
    """The identity behind a UUID of torch: Intel's bytes last byte first against xpu-smi, NVIDIA's without a prefix."""
    try:
        found = UUID(uuid)
    except ValueError:
        return uuid
    return f"GPU-{found}" if vendor == "nvidia" else str(UUID(bytes=found.bytes[::-1]))
