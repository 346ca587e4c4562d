"""Work orders of legs on cards: every card found before any affinity is set, the worker side exported once."""

from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.orders import MIB, SILENCE_S, free_port, private_folders, start_nonce
from labctl.campaign.roots import Roots
from labctl.clock import Clock
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import make_folders, read_regular, write_once
from labctl.errors import ManifestMismatch, Problem
from labctl.frozen import canonical_json
from labctl.host.devices.affinity import affinity_environment
from labctl.host.devices.discovery import discover, reader_of, select
from labctl.marker import ConsumedPacket
from labctl.packet.environment import base_environment
from labctl.packet.exported import exported_path, is_exported, module_role
from labctl.packet.interpreter import interpreter_path
from labctl.prereg.any_campaign import CardPreregistration
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.environment import SELECTING_VARIABLES
from labctl.prereg.host_profile import Devices
from labctl.prereg.model import Preregistration
from labctl.prereg.probe_model import ProbePreregistration
from labctl.records.card_order import CardLimits, ComponentOrder, ComponentWork, ProbeOrder
from labctl.records.devices import Card
from labctl.records.order import StartPaths
from labctl.rundir import LegPaths, RunPaths

INPUT_LIMIT_BYTES = 64 << 20
STOP_TIMEOUT_S = 10
RUN_WORKER, RUN_PROBE = "run_worker.py", "run_probe.py"
ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class CardPlan:
    """What turns a packet of a component or a probe into work orders on this machine."""

    roots: Roots
    """Machine paths."""
    scratch: Path
    """This run's own folder below the scratch root."""
    ambient: dict[str, str]
    """The environment that `environment_passed` names are taken from."""
    clock: Clock
    """The machine's clock."""


@dataclass(frozen=True, slots=True)
class CardGround:
    """What all legs of a run share: the cards, as they were before any affinity, and the exported code."""

    said: CardPreregistration
    consumed: ConsumedPacket
    selected: tuple[Card, ...]
    discovery_sha256: str
    inputs: dict[str, str]
    plan: CardPlan

    @property
    def code(self) -> Path:
        """The exported code."""
        return self.plan.scratch / "code"

    @property
    def devices(self) -> Devices:
        """How cards are looked at."""
        return self.consumed.packet.host.devices or Devices()


@dataclass(frozen=True, slots=True)
class CardRunLeg:
    """One leg, and where it writes."""

    index: int
    name: str
    files: LegPaths
    paths: StartPaths


def open_card_ground(consumed: ConsumedPacket, paths: RunPaths, plan: CardPlan) -> CardGround:
    """Find every card before any affinity is set, write that down, and export what legs run.

    Raises:
        PreflightFailed: a card that preflight saw is not there any more (WRONG_CARD).
        BrokenEvidence: a file of the packet is not the one that was frozen.
    """
    packet = consumed.packet
    if isinstance(packet.preregistration, Preregistration):
        message = "cards of a campaign that starts servers"
        raise RuntimeError(message)  # noqa: TRY004 (a call out of order, no wrong type)
    said, devices = packet.preregistration, packet.host.devices or Devices()
    discovery = discover(reader_of(said.cards, devices), devices, plan.clock)
    write_once(paths.host / "devices.json", discovery.canonical())
    selected = select(discovery, said.cards)
    inputs = _export(consumed, plan.scratch / "code")
    return CardGround(said, consumed, selected, sha256_hex(discovery.canonical()), inputs, plan)


def make_card_order(index: int, files: LegPaths, ground: CardGround) -> ComponentOrder | ProbeOrder:
    """The work order of one leg; creates its private folders.

    Args:
        index: the leg's place in the order, from 1.
        files: the leg's folder inside the run.
        ground: what all legs share.
    """
    name = ground.consumed.order[index - 1]
    leg = CardRunLeg(index, name, files, private_folders(files, ground.plan.scratch / name))
    if isinstance(ground.said, ComponentPreregistration):
        return _component_order(ground.said, leg, ground)
    return _probe_order(ground.said, leg, ground)


def _component_order(said: ComponentPreregistration, leg: CardRunLeg, ground: CardGround) -> ComponentOrder:
    card = ground.selected[leg.index - 1]
    work = ComponentWork.model_validate({name: getattr(said, name) for name in ComponentWork.model_fields})
    limits = _limits(said.worker.timeout_s, said.worker.log_limit_mib, said.worker.memory_mib)
    environment = _environment(said.worker.environment, leg.paths, ground) | affinity_environment(card)
    document = _head(leg, limits, environment, ground) | {
        "schema": "labctl/component-order/1",
        "kind": "component",
        "argv": _argv(leg, RUN_WORKER, ground),
        "card": card.model_dump(mode="json"),
        "card_index": leg.index - 1,
        "work": work.model_dump(mode="json"),
    }
    return ComponentOrder.from_json(canonical_json(document), "work order")


def _probe_order(said: ProbePreregistration, leg: CardRunLeg, ground: CardGround) -> ProbeOrder:
    port = free_port(ground.consumed.packet.host.network)
    limits = _limits(said.timeouts.total_s, said.log_limit_mib, None)
    document = _head(leg, limits, _environment(said.environment, leg.paths, ground), ground) | {
        "schema": "labctl/probe-order/1",
        "kind": "probe",
        "argv": _argv(leg, RUN_PROBE, ground),
        "address": ADDRESS,
        "port": port,
        "cards": [card.model_dump(mode="json") for card in ground.selected],
        "rank_environment": [_rank(rank, port, ground.selected) for rank in range(said.ranks)],
    }
    registered = said.model_dump(mode="json", include={"ranks", "backend", "collective", "timeouts"})
    return ProbeOrder.from_json(canonical_json(document | registered), "work order")


def _head(leg: CardRunLeg, limits: CardLimits, environment: dict[str, str], ground: CardGround) -> dict[str, object]:
    consumed = ground.consumed
    return {
        "packet_kind": consumed.packet.kind,
        "packet_sha256": consumed.packet_id,
        "marker_sha256": consumed.marker_sha256,
        "index": leg.index,
        "leg": leg.name,
        "machine_id_sha256": consumed.marker.host.machine_id_sha256,
        "boot_id": consumed.marker.host.boot_id,
        "nonce": start_nonce(consumed.marker.nonce, leg.name),
        "interpreter": str(_interpreter(ground)),
        "environment": environment,
        "paths": leg.paths.model_dump(mode="json"),
        "limits": limits.model_dump(mode="json"),
        "code": str(ground.code),
        "inputs": ground.inputs,
        "selection": ground.said.cards.model_dump(mode="json"),
        "devices": ground.devices.model_dump(mode="json"),
        "discovery_sha256": ground.discovery_sha256,
    }


def _argv(leg: CardRunLeg, program: str, ground: CardGround) -> list[str]:
    # Isolation ignores variables, so where compiled code goes is an option: a folder that this run made.
    cache = f"pycache_prefix={ground.plan.scratch / 'pycache-worker'}"
    started = exported_path(ground.code, module_role(program))
    return [str(_interpreter(ground)), "-I", "-u", "-X", cache, str(started), str(leg.files.order)]


def _interpreter(ground: CardGround) -> Path:
    packet = ground.consumed.packet
    return interpreter_path(packet.host, packet.interpreter.key, ground.plan.roots.repository)


def _environment(registered: dict[str, str], paths: StartPaths, ground: CardGround) -> dict[str, str]:
    names, ambient = ground.consumed.packet.host.environment_passed, ground.plan.ambient
    passed = {name: ambient[name] for name in names if name in ambient and name not in SELECTING_VARIABLES}
    return base_environment(home=paths.home, temporary=paths.temporary) | passed | registered


def _rank(rank: int, port: int, selected: tuple[Card, ...]) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": "0",  # each rank sees its own card alone, and that has the number 0
        "WORLD_SIZE": str(len(selected)),
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(port),
        **affinity_environment(selected[rank]),
    }


def _limits(timeout_s: int, log_limit_mib: int, memory_mib: int | None) -> CardLimits:
    return CardLimits(
        timeout_s=timeout_s,
        stop_timeout_s=STOP_TIMEOUT_S,
        log_limit_bytes=log_limit_mib * MIB,
        memory_limit_bytes=None if memory_mib is None else memory_mib * MIB,
        silence_s=SILENCE_S,
    )


def _export(consumed: ConsumedPacket, code: Path) -> dict[str, str]:
    """Write what legs run from the packet's own copies; nothing of labctl's folder or of the work tree is run."""
    inputs = {pinned.role: pinned.sha256 for pinned in consumed.packet.files if is_exported(pinned.role)}
    for role, digest in inputs.items():
        source = consumed.folder.inputs / role
        data = read_regular(source, limit_bytes=INPUT_LIMIT_BYTES)
        if sha256_hex(data) != digest:
            do = "restore the packet's folder from a copy"
            raise ManifestMismatch(Problem(Code.DIGEST_MISMATCH, str(source), digest, sha256_hex(data), do))
        path = exported_path(code, role)
        make_folders(path.parent)
        write_once(path, data)
    write_once(code / "labctl" / "__init__.py", b"")
    return inputs
