"""Records of the machine and of one start that contradict packet, marker or each other."""

from collections.abc import Iterator

from .run_reading import Leg, Run
from .sealed_files import Doc, canonical, sha256, unequal

MIB = 1 << 20


def host_contradictions(run: Run) -> Iterator[str]:
    """What was written of the machine and by preflight, held against the marker."""
    marker, identity, preflight = run.marker, run.host["identity.json"], run.host["preflight.json"]
    if identity is not None:
        names = ("machine_id_sha256", "boot_id")
        checks = ((name, marker["host"][name], identity[name]) for name in names)
        yield from unequal("data/host/identity.json", *checks)
    if preflight is not None:
        said = ("packet_sha256", "file_systems", "rehearsal_seal_sha256")
        unmet = [one["check"] for one in preflight["findings"] if not one["is_met"]]
        yield from unequal(
            "data/host/preflight.json",
            *((name, marker[name], preflight[name]) for name in said),
            ("checks that do not hold", [], unmet),
        )


def leg_contradictions(run: Run, leg: Leg) -> Iterator[str]:
    """Everything in the folder of one start that contradicts the packet or another record."""
    if leg.order is not None:
        yield from _order_contradictions(run, leg, leg.order)
        for row in leg.rows:
            opened, addressed = row.lines["opened"][0], (leg.order["address"], leg.order["port"])
            peers = [(one["peer_address"], one["peer_port"]) for one in row.lines["connected"]]
            told = [(opened["host"], opened["port"]), *peers]
            where = f"data/legs/{leg.folder}/wire/{row.number:02d}"
            yield from unequal(where, ("address and peer", [addressed] * len(told), told))
    if leg.started is not None:
        order = run.files.get(f"legs/{leg.folder}/order.json")
        wanted = (leg.name, order and sha256(order), run.marker["host"]["boot_id"])
        said = (leg.started["leg"], order and leg.started["order_sha256"], leg.started["boot_id"])
        yield from unequal(f"data/legs/{leg.folder}/LEG_STARTED.json", ("leg, order, boot", wanted, said))
    yield from _ending_contradictions(run, leg)


def _order_contradictions(run: Run, leg: Leg, order: Doc) -> Iterator[str]:
    host, service, workload = run.marker["host"], run.prereg["service"], run.prereg["workload"]
    wanted = {"packet_sha256": run.digests["packet.json"], "packet_kind": run.packet["kind"], "leg": leg.name}
    wanted |= {"marker_sha256": run.digests["marker.copy.json"], "index": int(leg.folder[:2]), "arm": leg.name[0]}
    wanted |= {"machine_id_sha256": host["machine_id_sha256"], "boot_id": host["boot_id"]}
    wanted |= {"nonce": run.nonce(leg.name), "engine": run.engine}
    argv, environment = run.expected_start(order)
    wanted |= {"argv": argv, "environment": environment}
    limits = {"ready_timeout_s": service["ready"]["timeout_s"], "stop_timeout_s": service["stop"]["timeout_s"]}
    limits |= {"request_timeout_s": workload["request_timeout_s"], "log_limit_bytes": service["log_limit_mib"] * MIB}
    asked = {name: workload[name] for name in ("api", "max_tokens", "seed", "ignore_eos")}
    folder = "/".join(order["paths"]["leg"].split("/")[-4:])
    yield from unequal(
        f"data/legs/{leg.folder}/order.json",
        *((name, value, order[name]) for name, value in wanted.items()),
        *((name, value, order["limits"][name]) for name, value in limits.items()),
        *((name, value, order["requests"][name]) for name, value in asked.items()),
        ("folder", f"{run.marker['run_dir']}/data/legs/{leg.folder}", folder),
    )


def request_contradictions(run: Run, leg: Leg, process: Doc) -> Iterator[str]:
    """Requests that are not those which the preregistration asks for, byte by byte."""
    workload, model = run.prereg["workload"], process["readiness"]["served_model"]
    asked = {"model": model, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    asked |= {"return_token_ids": True} | {name: workload[name] for name in ("max_tokens", "seed", "ignore_eos")}
    path = run.engine["endpoints"]["chat" if workload["api"] == "chat" else "completions"]
    places = [(row.number, row.lines["opened"][0]["prompt_id"]) for row in leg.rows]
    prompts = list(enumerate((prompt["id"] for prompt in run.prompts), start=1))
    yield from unequal(f"data/legs/{leg.folder}/wire", ("rows", prompts[: len(places)], places))
    for row, prompt in zip(leg.rows, run.prompts, strict=False):
        content = {"prompt": prompt["text"]} if prompt["text"] is not None else {"messages": prompt["messages"]}
        wanted, sent = canonical(asked | content)[:-1], "".join(line["bytes_latin1"] for line in row.lines["sent"])
        head, _, body = sent.encode("latin-1").partition(b"\r\n\r\n")
        where = f"data/legs/{leg.folder}/wire/{row.number:02d}"
        if sent:
            first = head.partition(b"\r\n")[0]
            yield from unequal(where, ("request line", f"POST {path} HTTP/1.1".encode(), first))
        if row.lines["closed"][0]["ended"] == "complete" or not wanted.startswith(body):
            yield from unequal(where, ("request body", wanted, body))


def _ending_contradictions(run: Run, leg: Leg) -> Iterator[str]:
    at = f"data/legs/{leg.folder}"
    if leg.postflight is not None and leg.log is not None:
        said = (leg.postflight["log_bytes"], leg.postflight["log_sha256"])
        yield from unequal(f"{at}/postflight.json", ("log", (len(leg.log), sha256(leg.log)), said))
    if leg.exit is not None:
        completed = sum(row.lines["closed"][0]["ended"] == "complete" for row in leg.rows)
        said = (leg.exit["leg"], leg.exit["rows_completed"])
        yield from unequal(f"{at}/exit.json", ("leg and completed rows", (leg.name, completed), said))
        if run.outcome is not None and not run.is_aborted:
            yield from unequal(f"{at}/exit.json", ("cause", "completed", leg.exit["cause"]))
