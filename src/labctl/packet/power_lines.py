"""What freezing computed of a campaign's power, in lines for people."""

from collections.abc import Iterator

from labctl.packet.model import Packet, PlannedPower
from labctl.prereg.model import Power, Preregistration


def power_lines(packet: Packet) -> Iterator[str]:
    """One line where the campaign states a power, none elsewhere."""
    match packet.planned_power, packet.preregistration:
        case PlannedPower() as planned, Preregistration(power=Power() as said):
            counts = " and ".join(map(str, planned.starts))
            effect = f"{said.planned_effect_percent} % at alpha {said.alpha}"
            yield f"  power: {planned.power} for {effect}, with {counts} starts at SD {planned.start_sd_percent} %"
        case _:
            return
