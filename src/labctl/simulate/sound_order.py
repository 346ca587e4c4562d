"""The work order of one simulated start."""

from labctl.digest import sha256_hex
from labctl.engines.reference import VOCABULARY
from labctl.packet.environment import base_environment
from labctl.packet.model import EndpointPacket
from labctl.prereg.arms import StartValues, arm_argv, arm_environment, fill, fill_environment
from labctl.prereg.model import Arm, Workload
from labctl.records.order import Limits, Requests, StartPaths, WorkOrder
from labctl.simulate.sound_packet import sound_suite

TOKENS = 100
BOOT = "00000000-0000-0000-0000-000000000000"
MACHINE = "0" * 64
NONCE = "0" * 32


def sound_order(packet: EndpointPacket, name: str, index: int) -> WorkOrder:
    """The order of one start, with the same folders and port for each, so that nothing differs but the arm."""
    registered, arm = packet.preregistration, Arm.of_leg(name)
    paths = StartPaths(leg="/run", scratch="/s", cache="/s/cache", temporary="/s/tmp", home="/s/home", working="/s/cwd")
    nonce = sha256_hex(f"{NONCE}:{name}".encode())[:32]
    values = StartValues(
        python="/python", host="127.0.0.1", port=1024, nonce=nonce, leg_dir="/s", cache_dir="/s/cache", models={}
    )
    base = base_environment(home=paths.home, temporary=paths.temporary)
    return WorkOrder(
        kind="endpoint",
        packet_kind=packet.kind,
        packet_sha256=packet.id,
        marker_sha256="0" * 64,
        index=index,
        leg=name,
        arm=arm,
        machine_id_sha256=MACHINE,
        boot_id=BOOT,
        nonce=nonce,
        address="127.0.0.1",
        port=values.port,
        argv=fill(arm_argv(registered, arm), values),
        environment=base | fill_environment(arm_environment(registered, arm), values),
        paths=paths,
        limits=_limits(),
        requests=_requests(registered.workload),
        engine=VOCABULARY,
    )


def _limits() -> Limits:
    return Limits(
        ready_timeout_s=60,
        stop_timeout_s=60,
        request_timeout_s=60,
        log_limit_bytes=1 << 20,
        response_limit_bytes=1 << 20,
        silence_s=10,
    )


def _requests(workload: Workload) -> Requests:
    prompts = sound_suite().prompts
    return Requests(api=workload.api, prompts=prompts, max_tokens=TOKENS, seed=workload.seed, ignore_eos=False)
