"""From what an operator names to one frozen packet: a folder, an id, or the campaign of its only unspent packet."""

import re
from pathlib import Path

from labctl.codes import Code
from labctl.errors import NotFound, Problem
from labctl.packet.attempts import MIN_PREFIX, EarlierPacket, earlier_packets
from labctl.packet.git_command import find_repository
from labctl.packet.ground import locate_campaign
from labctl.packet.machine import authorization_root
from labctl.prereg.card_files import AnyLoadedCampaign
from labctl.rundir import AuthorizationPaths, PacketPaths

DEFAULT_AUTHORIZATION = ".labctl/authorization"
_ID = re.compile(r"[0-9a-f]{1,64}")
_CAMPAIGN_SUFFIXES = (".yaml", ".yml")


def locate_packet(named: str, authorization: Path | None = None) -> PacketPaths:
    """The folder of the packet that is meant.

    Args:
        named: a packet's folder or its `packet.json`, an id or its first 12 digits or more, or a campaign file.
        authorization: where packets lie; by default the campaign's own root, or the usual one of this repository.

    Raises:
        NotFound: no packet is meant, or more than one (NOT_FOUND, AMBIGUOUS).
    """
    path = Path(named)
    if path.name == "packet.json" and path.is_file():
        return PacketPaths(path.absolute().parent)
    if (path / "packet.json").is_file():
        return PacketPaths(path.absolute())
    if _is_campaign(path):
        return _unspent_packet(path, authorization)
    root = authorization or find_repository(Path.cwd()) / DEFAULT_AUTHORIZATION
    return _by_id(named, AuthorizationPaths(root))


def locate_packet_to_read(named: str, authorization: Path | None = None) -> PacketPaths:
    """The folder of the packet that is meant; of a campaign whose packets are all spent, the last one.

    Raises:
        NotFound: no packet is meant, or more than one (NOT_FOUND, AMBIGUOUS).
    """
    if _is_campaign(path := Path(named)):
        root, _, packets = _packets_of(path, authorization)
        if packets and all(packet.is_spent for packet in packets):
            return root.packet(packets[-1].packet_id)
    return locate_packet(named, authorization)


def _is_campaign(path: Path) -> bool:
    return path.suffix in _CAMPAIGN_SUFFIXES and path.is_file()


def _packets_of(
    campaign: Path, authorization: Path | None
) -> tuple[AuthorizationPaths, AnyLoadedCampaign, tuple[EarlierPacket, ...]]:
    repository, loaded = locate_campaign(campaign)
    root = AuthorizationPaths(authorization) if authorization else authorization_root(loaded.host.model, repository)
    return root, loaded, earlier_packets(root, loaded.preregistration.model.id)


def _unspent_packet(campaign: Path, authorization: Path | None) -> PacketPaths:
    root, loaded, packets = _packets_of(campaign, authorization)
    unspent = [packet.packet_id for packet in packets if not packet.is_spent]
    if len(unspent) == 1:
        _require_same_file(campaign, loaded.preregistration.sha256, packets, unspent[0])
        return root.packet(unspent[0])
    code = Code.AMBIGUOUS if unspent else Code.NOT_FOUND
    spent = [packet.packet_id for packet in packets if packet.is_spent]
    listed = ", ".join(packet.packet_id[:12] for packet in packets) or "none"
    got = f"{len(unspent)} unspent and {len(spent)} spent: {listed}"
    follows = f" --follows {spent[-1]}" if spent else ""
    do = "name the packet by its id" if unspent else f"run `labctl packet freeze {campaign}{follows}`"
    raise NotFound(Problem(code, str(campaign), "one unspent packet", got, do))


def _require_same_file(campaign: Path, sha256: str, packets: tuple[EarlierPacket, ...], packet_id: str) -> None:
    """What is named is a file, so the packet must be of this very file: a later edit would otherwise run unseen."""
    frozen = next(earlier.packet.prereg_yaml_sha256 for earlier in packets if earlier.packet_id == packet_id)
    if frozen != sha256:
        expected = f"the file that packet {packet_id[:12]} was frozen from"
        do = f"freeze the file as it is now, or name the packet by its id: {packet_id}"
        raise NotFound(Problem(Code.FILE_DRIFT, str(campaign), expected, "another text", do))


def _by_id(named: str, root: AuthorizationPaths) -> PacketPaths:
    is_id = _ID.fullmatch(named) and len(named) >= MIN_PREFIX
    names = [folder.name for folder in root.packets.iterdir()] if is_id and root.packets.is_dir() else []
    found = [name for name in names if name.startswith(named)]
    if len(found) == 1:
        return root.packet(found[0])
    code = Code.AMBIGUOUS if found else Code.NOT_FOUND
    expected = f"a campaign file, a packet's folder, or its id ({MIN_PREFIX} digits or more) below {root.packets}"
    got = f"{len(found)} packets" if found else repr(named)[:100]
    raise NotFound(Problem(code, "packet", expected, got, "look at `labctl status`, or name --authorization DIR"))
