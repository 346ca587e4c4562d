"""Whether the noise that a record's power rests on is this host's own."""

from collections.abc import Iterator

from labctl.campaign.look import Look, attempted
from labctl.codes import Code
from labctl.durable import read_regular
from labctl.host.identity import read_host_identity
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
    is_record = isinstance(said, Preregistration) and said.campaign_class is CampaignClass.RECORD
    if packet.kind == "rehearsal" or not is_record or packet.file(NOISE_ROLE) is None:
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
