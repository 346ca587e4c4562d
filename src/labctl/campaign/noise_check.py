"""Whether the noise that a record's power rests on is this host's own."""

from collections.abc import Iterator

from labctl.campaign.look import Look, attempted
from labctl.codes import Code
from labctl.durable import read_regular
from labctl.host.identity import read_host_identity
from labctl.packet.lane import lane_target
from labctl.packet.model import Packet
from labctl.packet.noise_host import host_differences
from labctl.packet.planned_power import NOISE_ROLE
from labctl.packet.review import ReviewedPacket
from labctl.prereg.model import CampaignClass, Preregistration
from labctl.prereg.noise import NoiseRecord

LIMIT_BYTES = 64 << 20
EXPECTED = "a noise record of this host"


def noise_looks(reviewed: ReviewedPacket) -> Iterator[Look]:
    """Class record: the noise record names this machine as it is now. Every other class is told in its verdict."""
    packet, said = reviewed.packet, reviewed.packet.preregistration
    if not isinstance(said, Preregistration) or said.campaign_class is not CampaignClass.RECORD:
        return
    if packet.kind == "rehearsal" or packet.file(NOISE_ROLE) is None:
        return
    found: list[NoiseRecord] = []
    where = str(reviewed.folder.inputs / NOISE_ROLE)

    def read() -> None:
        data = read_regular(reviewed.folder.inputs / NOISE_ROLE, limit_bytes=LIMIT_BYTES)
        found.append(NoiseRecord.from_json(data, where))

    yield from attempted("noise", "a noise record that can be read", read, where)
    for noise in found:
        differing = host_differences(noise, read_host_identity())
        got = f"one of a host that differs in {', '.join(differing)}" if differing else f"{noise.id}, of this host"
        do = "calibrate this host, pool the runs with `labctl power pool`, and freeze anew"
        yield Look("noise.host", Code.PREFLIGHT, EXPECTED, got, is_met=not differing, do=do)
        yield _service_look(noise, packet, said.service.engine)


def _service_look(noise: NoiseRecord, packet: Packet, engine: str) -> Look:
    """Another service on the same host has another spread; the engine's version shows only as it runs."""
    own, named = (engine, lane_target(packet)), (noise.engine.partition(" ")[0], noise.target)
    expected, got = (f"a noise record of {' serving '.join(side)}" for side in (own, named))
    do = "calibrate this service, pool the runs with `labctl power pool`, and freeze anew"
    return Look("noise.service", Code.PREFLIGHT, expected, got, is_met=own == named, do=do)
