"""The plan of a component or a probe, in words; nothing is touched, and no card is looked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from labctl.campaign.orders import planned_paths
from labctl.campaign.plan import plan_head, plan_tail
from labctl.campaign.roots import Roots
from labctl.packet.card_summary import card_lines
from labctl.packet.environment import base_environment
from labctl.packet.interpreter import interpreter_path
from labctl.prereg.any_campaign import CardPreregistration
from labctl.prereg.cards import CardVendor
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.probe_model import ProbePreregistration

_SELECTION = {
    CardVendor.CPU: "the worker is bound to the card's CPUs",
    CardVendor.NVIDIA: "environment: CUDA_VISIBLE_DEVICES=<UUID of the card>",
    CardVendor.INTEL: "environment: ZE_AFFINITY_MASK=<number of the card>, ONEAPI_DEVICE_SELECTOR=level_zero:0",
}


def describe_card_plan(said: CardPreregistration, profile: HostProfile, roots: Roots) -> Iterator[str]:
    """The plan of a campaign without a server, line by line.

    Args:
        said: the campaign.
        profile: its host profile.
        roots: where a run would write.
    """
    yield from plan_head(said, roots)
    python = interpreter_path(profile, said.interpreter, roots.repository)
    program = "run_worker.py" if isinstance(said, ComponentPreregistration) else "run_probe.py"
    last = "order.json" if isinstance(said, ComponentPreregistration) else "order.json RANK"
    for index, leg in enumerate(said.order, start=1):
        scratch = planned_paths(Path("data") / "legs" / f"{index:02d}-{leg}", roots.scratch / "<random>" / leg)
        yield f"leg {index}, {leg}, into {scratch.leg}"
        code = roots.scratch / "<random>" / "code" / "labctl" / "component" / program
        yield f"  command: {python} -I -u -X pycache_prefix=<scratch> {code} {scratch.leg}/{last}"
        yield f"  {_SELECTION[said.cards.vendor]}"
        base = base_environment(home=scratch.home, temporary=scratch.temporary)
        for name, value in sorted((base | _registered(said)).items()):
            yield f"  environment: {name}={value}"
        yield ""
    yield from card_lines(said)
    yield from plan_tail(said)


def _registered(said: CardPreregistration) -> dict[str, str]:
    match said:
        case ComponentPreregistration():
            return said.worker.environment
        case ProbePreregistration():
            return said.environment
        case _:
            assert_never(said)
