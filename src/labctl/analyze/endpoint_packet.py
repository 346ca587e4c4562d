"""The packet of a run of servers, or the reason why there is none to read."""

from labctl.codes import Code
from labctl.errors import Problem, Refused
from labctl.packet.model import EndpointPacket, Packet, endpoint_packet


def read_endpoint_packet(data: bytes) -> EndpointPacket:
    """The packet of a campaign that starts servers.

    Raises:
        MalformedRecord: the bytes are no packet.
        Refused: the run's campaign starts none (WRONG_VALUE).
    """
    where = "data/packet/packet.json"
    packet = Packet.from_json(data, where)
    kind = packet.preregistration.kind
    if kind != "endpoint":
        do = "name a run of a campaign of kind endpoint"
        raise Refused(Problem(Code.WRONG_VALUE, where, "a run of servers", f"a run of kind {kind}", do))
    return endpoint_packet(packet)
