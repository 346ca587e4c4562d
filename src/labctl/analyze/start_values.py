"""The per-start values behind one observed argument list, and the arms' templates filled with them."""

import re

from labctl.packet.environment import base_environment
from labctl.packet.model import EndpointPacket
from labctl.prereg.arms import PLACEHOLDER, StartValues, arm_argv, arm_environment, fill_environment
from labctl.prereg.model import Arm
from labctl.records.order import WorkOrder


def start_values(packet: EndpointPacket, order: WorkOrder) -> StartValues:
    """What each placeholder stood for; interpreter and model paths are read off the work order's own arguments."""
    template = arm_argv(packet.preregistration, order.arm)
    found: dict[str, str] = {}
    own = arm_environment(packet.preregistration, order.arm)
    seen = [(part, order.environment.get(name, "")) for name, part in own.items()]
    for part, observed in [*zip(template, order.argv, strict=False), *seen]:
        found |= {name: value for name, value in _captured(part, observed).items() if name not in found}
    names = {source.name for source in packet.preregistration.models}
    return StartValues(
        python=found.get("python") or "unknown",
        host=order.address,
        port=order.port,
        nonce=order.nonce,
        leg_dir=order.paths.scratch,
        cache_dir=order.paths.cache,
        binaries=found.get("binaries"),
        models={name: found.get(f"model:{name}") or "unknown" for name in sorted(names)},
    )


def expected_environment(packet: EndpointPacket, order: WorkOrder, values: StartValues) -> dict[str, str]:
    """The whole environment of a start: the fixed base, what the host profile passes on, and the arm's own."""
    passed = {name: order.environment[name] for name in packet.host.environment_passed if name in order.environment}
    own = fill_environment(arm_environment(packet.preregistration, order.arm), values)
    return _base(packet, home=order.paths.home, temporary=order.paths.temporary) | passed | own


def environment_template(packet: EndpointPacket, order: WorkOrder, arm: Arm) -> dict[str, str]:
    """The same with placeholders, so that two starts can be compared name by name."""
    passed = {name: order.environment[name] for name in packet.host.environment_passed if name in order.environment}
    return _base(packet, home="{home}", temporary="{tmp}") | passed | arm_environment(packet.preregistration, arm)


def _base(packet: EndpointPacket, *, home: str, temporary: str) -> dict[str, str]:
    """The fixed base as it was when the packet was frozen: earlier releases set fewer names."""
    base = base_environment(home=home, temporary=temporary)
    return {name: value for name, value in base.items() if name in packet.environment_allowed}


def _captured(part: str, observed: str) -> dict[str, str]:
    """What the placeholders of one template part stood for in the observed part."""
    names: list[str] = []
    pattern = ""
    end = 0
    for match in PLACEHOLDER.finditer(part):
        pattern += re.escape(part[end : match.start()]) + "(.+)"
        names.append(match[0][1:-1])
        end = match.end()
    matched = re.fullmatch(pattern + re.escape(part[end:]), observed, re.DOTALL) if names else None
    return {} if matched is None else dict(zip(names, matched.groups(), strict=True))
