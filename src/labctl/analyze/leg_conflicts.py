"""Contradictions between the records of one start: its work order, its claim, its rows, its log, its end."""

from collections.abc import Iterator

from labctl.analyze.evidence import LegEvidence, RunEvidence, conflict, differences
from labctl.analyze.start_values import expected_environment, start_values
from labctl.digest import sha256_hex
from labctl.errors import Problem
from labctl.prereg.arms import arm_argv, fill
from labctl.prereg.model import Api
from labctl.prereg.suite import Prompt
from labctl.records.leg import StopCause
from labctl.records.order import WorkOrder
from labctl.records.requests import Generation, request_body
from labctl.records.wire import WireRow

MIB = 1 << 20


def leg_conflicts(evidence: RunEvidence, leg: LegEvidence) -> Iterator[Problem]:
    """Everything in one leg's folder that contradicts the packet, the suite or another record."""
    where = f"data/legs/{leg.folder}"
    if leg.order is not None:
        yield from _order_conflicts(evidence, leg, leg.order)
        yield from _content_conflicts(evidence, leg, leg.order)
        yield from _wire_conflicts(evidence, leg, leg.order)
    if leg.started is not None:
        yield from differences(
            f"{where}/LEG_STARTED.json",
            [
                ("leg", leg.name, leg.started.leg),
                ("order digest", leg.order_sha256, leg.started.order_sha256),
                ("boot", evidence.marker.host.boot_id, leg.started.boot_id),
            ],
        )
    yield from _ending_conflicts(evidence, leg, where)


def _order_conflicts(evidence: RunEvidence, leg: LegEvidence, order: WorkOrder) -> Iterator[Problem]:
    marker = evidence.marker
    yield from differences(
        f"data/legs/{leg.folder}/order.json",
        [
            ("packet", evidence.packet_id, order.packet_sha256),
            ("packet kind", evidence.packet.kind, order.packet_kind),
            ("marker", evidence.marker_sha256, order.marker_sha256),
            ("index", leg.index, order.index),
            ("leg", leg.name, order.leg),
            ("arm", leg.arm, order.arm),
            ("machine", marker.host.machine_id_sha256, order.machine_id_sha256),
            ("boot", marker.host.boot_id, order.boot_id),
            ("nonce", sha256_hex(f"{marker.nonce}:{leg.name}".encode())[:32], order.nonce),
            ("engine", evidence.engine, order.engine),
            ("folder", f"{marker.run_dir}/data/legs/{leg.folder}", "/".join(order.paths.leg.split("/")[-4:])),
        ],
    )


def _content_conflicts(evidence: RunEvidence, leg: LegEvidence, order: WorkOrder) -> Iterator[Problem]:
    preregistration = evidence.packet.preregistration
    service, workload = preregistration.service, preregistration.workload
    values = start_values(evidence.packet, order)
    requests, limits = order.requests, order.limits
    yield from differences(
        f"data/legs/{leg.folder}/order.json",
        [
            ("argv", fill(arm_argv(preregistration, leg.arm), values), order.argv),
            ("environment", expected_environment(evidence.packet, order, values), order.environment),
            ("prompts", () if evidence.suite is None else evidence.suite.prompts, requests.prompts),
            ("api", workload.api, requests.api),
            ("max_tokens", workload.max_tokens, requests.max_tokens),
            ("seed", workload.seed, requests.seed),
            ("ignore_eos", workload.ignore_eos, requests.ignore_eos),
            ("ready_timeout_s", service.ready.timeout_s, limits.ready_timeout_s),
            ("stop_timeout_s", service.stop.timeout_s, limits.stop_timeout_s),
            ("request_timeout_s", workload.request_timeout_s, limits.request_timeout_s),
            ("log_limit_bytes", service.log_limit_mib * MIB, limits.log_limit_bytes),
        ],
    )


def _wire_conflicts(evidence: RunEvidence, leg: LegEvidence, order: WorkOrder) -> Iterator[Problem]:
    places = [wire.opened.row for wire in leg.wires]
    where = f"data/legs/{leg.folder}/wire"
    if places != list(range(1, len(places) + 1)) or len(places) > len(order.requests.prompts):
        yield conflict(where, f"rows 1 to {len(order.requests.prompts)}, each once", places)
        return
    endpoints = evidence.engine.endpoints
    path = endpoints.completions if order.requests.api is Api.COMPLETIONS else endpoints.chat
    model = leg.process.readiness.served_model if leg.process is not None else None
    for wire, prompt in zip(leg.wires, order.requests.prompts, strict=False):
        place = f"{where}/{wire.opened.row:02d}"
        yield from differences(
            place,
            [
                ("prompt", prompt.id, wire.opened.prompt_id),
                ("address", (order.address, order.port), (wire.opened.host, wire.opened.port)),
            ],
        )
        yield from _peer_conflicts(place, order, wire)
        if wire.sent and model is not None:
            yield from _request_conflicts(place, wire, (path, _body(order, prompt, model)))


def _peer_conflicts(place: str, order: WorkOrder, wire: WireRow) -> Iterator[Problem]:
    if wire.connected is not None:
        peer = (wire.connected.peer_address, wire.connected.peer_port)
        yield from differences(place, [("peer", (order.address, order.port), peer)])


def _request_conflicts(place: str, wire: WireRow, expected: tuple[str, bytes]) -> Iterator[Problem]:
    path, body = expected
    head, _, sent = wire.request.partition(b"\r\n\r\n")
    is_cut = wire.closed.ended != "complete" and body.startswith(sent)
    first = head.split(b"\r\n", 1)[0]
    yield from differences(place, [("request line", f"POST {path} HTTP/1.1".encode(), first)])
    if sent != body and not is_cut:
        yield conflict(f"{place}: request body", body, sent)


def _body(order: WorkOrder, prompt: Prompt, model: str) -> bytes:
    asked = order.requests
    generation = Generation(model=model, max_tokens=asked.max_tokens, seed=asked.seed, ignore_eos=asked.ignore_eos)
    if prompt.text is not None:
        return request_body(generation, prompt.text)
    return request_body(generation, [message.model_dump(mode="json") for message in prompt.messages or ()])


def _ending_conflicts(evidence: RunEvidence, leg: LegEvidence, where: str) -> Iterator[Problem]:
    if leg.postflight is not None and leg.log is not None:
        yield from differences(
            f"{where}/postflight.json",
            [
                ("log bytes", len(leg.log), leg.postflight.log_bytes),
                ("log digest", sha256_hex(leg.log), leg.postflight.log_sha256),
            ],
        )
    if leg.exit is None:
        return
    yield from differences(f"{where}/exit.json", [("leg", leg.name, leg.exit.leg)])
    completed = sum(wire.closed.ended == "complete" for wire in leg.wires)
    yield from differences(f"{where}/exit.json", [("completed rows", completed, leg.exit.rows_completed)])
    is_whole_run = evidence.outcome is not None and not evidence.is_aborted
    if is_whole_run and leg.exit.cause is not StopCause.COMPLETED:
        yield conflict(f"{where}/exit.json: cause", StopCause.COMPLETED, leg.exit.cause)
