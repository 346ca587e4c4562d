"""The lane of a packet: what it tries to improve, from what it pins and never from what it is called."""

from fractions import Fraction
from math import comb

from labctl.packet.model import Packet
from labctl.prereg.model import Arm, CampaignClass, Preregistration
from labctl.prereg.statistics_gates import Effect
from labctl.records.lane import LaneKey

TARGET = "target"


def lane_key(packet: Packet, machine_id_sha256: str) -> LaneKey | None:
    """The lane of a packet on a machine; None for rehearsals, calibrations, and where nothing is decided."""
    said = packet.preregistration
    if packet.kind == "rehearsal" or not isinstance(said, Preregistration) or said.decision is None:
        return None
    if said.campaign_class is CampaignClass.CALIBRATION:
        return None  # two labels of one service: there is nothing to improve
    return LaneKey(target=lane_target(packet), metric=said.decision.headline, machine_id_sha256=machine_id_sha256)


def lane_target(packet: Packet) -> str:
    """What is served: the manifest of the model named `target`, else of the first model, else the engine."""
    named = [model for model in packet.models if model.name == TARGET] or list(packet.models)
    if named:
        return f"model:{named[0].manifest_sha256}"
    said = packet.preregistration
    return f"engine:{said.service.engine}" if isinstance(said, Preregistration) else f"kind:{said.kind}"


def lane_alpha(said: Preregistration) -> Fraction:
    """The error rate of one attempt: of the effect gate; without one the stated rate or the order's floor, the larger.

    The floor is the chance that the starts alone fall into the order that favours the candidate most.
    """
    gates = [1 - Fraction(gate.confidence) for gate in said.gates if isinstance(gate, Effect)]
    if gates:
        return min(gates)
    stated = Fraction(said.power.alpha) if said.power is not None else Fraction(0)
    candidates = sum(Arm.of_leg(leg) is Arm.CANDIDATE for leg in said.schedule.order)
    return max(stated, Fraction(1, comb(len(said.schedule.order), candidates)))


def lucky_pass_chance(alpha: Fraction, attempt: int) -> Fraction:
    """The chance that at least one of so many attempts without any effect has passed by luck: 1 - (1 - alpha)^n."""
    return 1 - (1 - alpha) ** attempt
