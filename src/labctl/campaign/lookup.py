"""Find what lies on this machine: every packet of every host profile, and a run by folder or name."""

from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.roots import Roots
from labctl.codes import Code
from labctl.errors import InvalidPreregistration, NotFound, Problem
from labctl.packet.locate import DEFAULT_AUTHORIZATION
from labctl.packet.model import Packet
from labctl.packet.opening import open_packet
from labctl.prereg.load import load_any_preregistration, load_host_profile
from labctl.rundir import AuthorizationPaths, PacketPaths


@dataclass(frozen=True, slots=True)
class FrozenPacket:
    """A packet that lies in an authorization root."""

    packet: Packet
    folder: PacketPaths
    roots: Roots


@dataclass(frozen=True, slots=True)
class KnownRoots:
    """The roots of the host profiles that can be read, and what is wrong with the others."""

    roots: tuple[Roots, ...]
    problems: tuple[Problem, ...]


def readable_roots(repository: Path) -> KnownRoots:
    """The roots of every readable host profile below `campaigns/hosts/`, and for rehearsals those beside them."""
    found: dict[Path, Roots] = {}
    problems: list[Problem] = []
    for path in sorted(repository.glob("**/campaigns/hosts/*.yaml")):
        try:
            profile = load_host_profile(path).model
        except InvalidPreregistration as error:
            problems += error.problems
            continue
        for each in (Roots.of_profile(profile, repository), Roots.of_rehearsals(profile, repository)):
            found.setdefault(each.authorization.root, each)
    return KnownRoots(tuple(found.values()), tuple(problems))


def known_roots(repository: Path) -> tuple[Roots, ...]:
    """The roots of every host profile, where nothing may be overlooked.

    Raises:
        InvalidPreregistration: with every problem of every profile that cannot be read.
    """
    known = readable_roots(repository)
    if known.problems:
        raise InvalidPreregistration(known.problems)
    return known.roots


def known_authorizations(repository: Path) -> tuple[AuthorizationPaths, ...]:
    """Every authorization root of the host profiles, and the usual one where no profile is there."""
    usual = AuthorizationPaths(repository / DEFAULT_AUTHORIZATION)
    return tuple(roots.authorization for roots in known_roots(repository)) or (usual,)


def campaign_id(name: str) -> str:
    """The id of a campaign, given the path of its file or the id itself.

    Raises:
        InvalidPreregistration: the file is no campaign.
    """
    return load_any_preregistration(Path(name)).model.id if Path(name).is_file() else name


def frozen_packets(roots: tuple[Roots, ...]) -> tuple[FrozenPacket, ...]:
    """Every packet of some authorization roots, in the order of attempts."""
    found = [
        FrozenPacket(open_packet(folder), folder, root)
        for root in roots
        for folder in _packet_folders(root)
        if folder.packet.is_file()
    ]
    return tuple(sorted(found, key=lambda frozen: (frozen.packet.preregistration.id, frozen.packet.attempt)))


def run_folder(text: str, roots: tuple[Roots, ...]) -> Path:
    """The folder of a run, given its path or its name.

    Raises:
        NotFound: there is no such run.
    """
    if Path(text).is_dir():
        return Path(text).absolute()
    found = [root.runs / text for root in roots if (root.runs / text).is_dir()]
    if len(found) == 1:
        return found[0]
    raise NotFound(
        Problem(Code.NOT_FOUND, text, "the folder or the name of a run", "neither", "see `labctl runs list`")
    )


def _packet_folders(roots: Roots) -> list[PacketPaths]:
    folder = roots.authorization.packets
    return [PacketPaths(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []
