"""Work orders: what each leg process is told, generated from one packet so that the arms can differ in nothing else."""

import socket
from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.roots import Roots
from labctl.digest import sha256_hex
from labctl.durable import make_folder
from labctl.engines.vocabulary import EngineVocabulary
from labctl.marker import ConsumedPacket
from labctl.packet.environment import base_environment
from labctl.packet.interpreter import interpreter_path
from labctl.packet.machine import machine_key
from labctl.packet.model import EndpointPacket, endpoint_packet
from labctl.prereg.arms import StartValues, arm_argv, arm_binaries, arm_environment, fill, fill_environment
from labctl.prereg.host_profile import Network
from labctl.prereg.model import Arm
from labctl.prereg.suite import Suite
from labctl.records.order import Limits, Requests, StartPaths, WorkOrder
from labctl.rundir import LegPaths

MIB = 1 << 20
RESPONSE_LIMIT_BYTES = 256 * MIB
SILENCE_S = 10


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """What turns a packet into work orders on this machine."""

    roots: Roots
    """Machine paths."""
    scratch: Path
    """This run's own folder below the scratch root."""
    suite: Suite
    """The prompts, from the packet's own copy."""
    engine: EngineVocabulary
    """The packet's vocabulary."""
    ambient: dict[str, str]
    """The environment that `environment_passed` names are taken from."""


def make_order(consumed: ConsumedPacket, index: int, files: LegPaths, plan: OrderPlan) -> WorkOrder:
    """The work order of one leg; creates its private folders and picks its port.

    Args:
        consumed: the spent packet.
        index: the leg's place in the order, from 1.
        files: the leg's folder inside the run.
        plan: this machine.
    """
    packet = endpoint_packet(consumed.packet)
    leg = consumed.order[index - 1]
    paths = private_folders(files, plan.scratch / leg)
    values = start_values(
        (packet, leg), plan, paths, (start_nonce(consumed.marker.nonce, leg), free_port(packet.host.network))
    )
    return WorkOrder(
        kind="endpoint",
        packet_kind=packet.kind,
        packet_sha256=consumed.packet_id,
        marker_sha256=consumed.marker_sha256,
        index=index,
        leg=leg,
        arm=Arm.of_leg(leg),
        machine_id_sha256=consumed.marker.host.machine_id_sha256,
        boot_id=consumed.marker.host.boot_id,
        nonce=values.nonce,
        address=packet.host.network.address,
        port=values.port,
        argv=start_argv(packet, leg, values),
        environment=start_environment(packet, leg, (values, paths, plan.ambient)),
        paths=paths,
        limits=_limits(packet),
        requests=_requests(packet, plan.suite),
        engine=plan.engine,
        cards=None if packet.host.devices is None else packet.host.devices.idle_cards,
        devices=packet.host.devices,
    )


def start_nonce(seed: str, leg: str) -> str:
    """The nonce of one start, derived from the marker's: 32 hex digits."""
    return sha256_hex(f"{seed}:{leg}".encode())[:32]


def start_values(
    place: tuple[EndpointPacket, str], plan: OrderPlan, paths: StartPaths, given: tuple[str, int]
) -> StartValues:
    """The only values that differ from start to start; `place` is the packet and the leg, `given` nonce and port."""
    packet, leg = place
    nonce, port = given
    binaries = arm_binaries(packet.preregistration, Arm.of_leg(leg))
    preregistration = packet.preregistration
    python = interpreter_path(packet.host, packet.interpreter.key, plan.roots.repository)
    return StartValues(
        python=str(python),
        host=packet.host.network.address,
        port=port,
        nonce=nonce,
        leg_dir=paths.scratch,
        cache_dir=paths.cache,
        models={
            source.name: str(machine_key(packet.host.models, source.name, plan.roots.repository))
            for source in preregistration.models
        },
        # resolved, because that is how the kernel names what is mapped from there
        binaries=binaries and str(machine_key(packet.host.binaries, binaries, plan.roots.repository).resolve()),
    )


def start_argv(packet: EndpointPacket, leg: str, values: StartValues) -> tuple[str, ...]:
    """The argument list of one start."""
    return fill(arm_argv(packet.preregistration, Arm.of_leg(leg)), values)


def start_environment(
    packet: EndpointPacket, leg: str, given: tuple[StartValues, StartPaths, dict[str, str]]
) -> dict[str, str]:
    """The whole environment of one start: the fixed base, what the host profile passes on, and the arm's own."""
    values, paths, ambient = given
    passed = {name: ambient[name] for name in packet.host.environment_passed if name in ambient}
    own = fill_environment(arm_environment(packet.preregistration, Arm.of_leg(leg)), values)
    return base_environment(home=paths.home, temporary=paths.temporary) | passed | own


def planned_paths(run_leg: Path, scratch: Path) -> StartPaths:
    """The folders of a start; nothing is created."""
    return StartPaths(
        leg=str(run_leg),
        scratch=str(scratch),
        cache=str(scratch / "cache"),
        temporary=str(scratch / "tmp"),
        home=str(scratch / "home"),
        working=str(scratch / "cwd"),
    )


def private_folders(files: LegPaths, scratch: Path) -> StartPaths:
    """The same folders, created."""
    paths = planned_paths(files.root, scratch)
    for folder in (paths.scratch, paths.cache, paths.temporary, paths.home, paths.working):
        make_folder(Path(folder))
    return paths


def free_port(network: Network) -> int:
    """The registered port, or a free one."""
    if network.port:
        return network.port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((network.address, 0))
        return int(probe.getsockname()[1])


def _limits(packet: EndpointPacket) -> Limits:
    service = packet.preregistration.service
    return Limits(
        ready_timeout_s=service.ready.timeout_s,
        stop_timeout_s=service.stop.timeout_s,
        request_timeout_s=packet.preregistration.workload.request_timeout_s,
        log_limit_bytes=service.log_limit_mib * MIB,
        response_limit_bytes=RESPONSE_LIMIT_BYTES,
        silence_s=SILENCE_S,
    )


def _requests(packet: EndpointPacket, suite: Suite) -> Requests:
    workload = packet.preregistration.workload
    return Requests(
        api=workload.api,
        prompts=suite.prompts,
        max_tokens=workload.max_tokens,
        seed=workload.seed,
        ignore_eos=workload.ignore_eos,
    )
