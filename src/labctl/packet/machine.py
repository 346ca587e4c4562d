"""Where a campaign's machine paths lie: the host profile's paths, from the top of the campaign repository."""

from collections.abc import Mapping
from pathlib import Path

from labctl.codes import Code
from labctl.errors import FreezeRefused, Problem
from labctl.packet.model import Packet
from labctl.prereg.host_profile import HostProfile
from labctl.rundir import AuthorizationPaths, PacketPaths

REHEARSALS = "rehearsals"


def authorization_root(host: HostProfile, repository: Path) -> AuthorizationPaths:
    """Packets and markers of real campaigns."""
    return AuthorizationPaths(repository / host.roots.authorization)


def rehearsal_authorization_root(host: HostProfile, repository: Path) -> AuthorizationPaths:
    """Packets and markers of rehearsals, which authorize nothing else."""
    return AuthorizationPaths(repository / host.roots.runs / REHEARSALS / "authorization")


def scratch_root(host: HostProfile, repository: Path) -> Path:
    """Snapshots and private folders; emptied by labctl."""
    return repository / host.roots.scratch


def packet_folder(packet: Packet, repository: Path) -> PacketPaths:
    """Where a packet lies that was frozen in this repository."""
    root = authorization_root if packet.kind == "real" else rehearsal_authorization_root
    return root(packet.host, repository).packet(packet.id)


def machine_key(places: Mapping[str, str], key: str, repository: Path) -> Path:
    """The path that a key of the host profile names.

    Raises:
        FreezeRefused: the profile has no such key (NOT_FOUND).
    """
    if key not in places:
        known = ", ".join(sorted(places)) or "no key"
        do = "add it to the host profile, or name another"
        raise FreezeRefused(Problem(Code.NOT_FOUND, "host profile", f"the key {key}", known, do))
    return repository / places[key]
