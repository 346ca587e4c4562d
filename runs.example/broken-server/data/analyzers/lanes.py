"""Which attempt at what a run is, as its marker says, and what luck alone could have done by now."""

from collections.abc import Iterator
from fractions import Fraction
from math import comb

from .row_figures import figure
from .run_reading import Run
from .sealed_files import Doc, unequal


def lane_contradictions(run: Run) -> Iterator[str]:
    """A lane in the marker that is not what the packet and the machine say."""
    if "lane" in run.marker:
        yield from unequal("data/packet", ("lane of the marker", _lane(run), run.marker["lane"]["key"]))


def lane_figures(run: Run) -> list[Doc]:
    """The attempt, and the chance that one of so many attempts without any effect has passed by luck."""
    if "lane" not in run.marker:
        return []
    attempt = run.marker["lane"]["attempt"]
    chance = 1 - (1 - _alpha(run.prereg)) ** attempt
    return [figure("lane_attempt", "", attempt, "attempts"), figure("lucky_pass_chance", "", chance, "share")]


def _lane(run: Run) -> Doc | None:
    """What is served, the rate that counts, and the machine; None for what is no attempt."""
    packet, prereg = run.packet, run.prereg
    if packet["kind"] == "rehearsal" or prereg["class"] == "calibration" or prereg["decision"] is None:
        return None
    models = [one for one in packet["models"] if one["name"] == "target"] or packet["models"]
    target = f"model:{models[0]['manifest_sha256']}" if models else f"engine:{prereg['service']['engine']}"
    machine = run.marker["host"]["machine_id_sha256"]
    return {"target": target, "metric": prereg["decision"]["headline"], "machine_id_sha256": machine}


def _alpha(prereg: Doc) -> Fraction:
    """The error rate of one attempt: the effect gate's; without one, the larger of the stated and the order's floor."""
    gates = [1 - Fraction(gate["confidence"]) for gate in prereg["gates"] if gate["kind"] == "effect"]
    if gates:
        return min(gates)
    stated = Fraction(prereg["power"]["alpha"]) if prereg["power"] is not None else Fraction(0)
    order = prereg["schedule"]["order"]
    return max(stated, Fraction(1, comb(len(order), sum(leg[0] == "B" for leg in order))))
