"""Find what a command names: a campaign by file or id, a packet by id, a run by folder or name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.roots import Roots
from labctl.codes import Code
from labctl.errors import LabctlError, NotFound, Problem
from labctl.packet.model import Packet
from labctl.packet.opening import open_packet
from labctl.prereg.load import load_host_profile, load_preregistration
from labctl.rundir import PacketPaths

PACKET_PREFIX = re.compile(r"[0-9a-f]{8,64}\Z")


@dataclass(frozen=True, slots=True)
class FrozenPacket:
    """A packet that lies in an authorization root."""

    packet: Packet
    folder: PacketPaths
    roots: Roots


def known_roots(repository: Path) -> tuple[Roots, ...]:
    """The roots of every host profile below `campaigns/hosts/`, and for rehearsals those beside them; each once."""
    found: dict[Path, Roots] = {}
    for path in sorted(repository.glob("**/campaigns/hosts/*.yaml")):
        roots = Roots.of_profile(load_host_profile(path).model, repository)
        for each in (roots, roots.for_rehearsals()):
            found.setdefault(each.authorization.root, each)
    return tuple(found.values())


def campaign_file(name: str, repository: Path) -> Path:
    """The file of a campaign, given its path or its id.

    Raises:
        NotFound: no campaign file has this path or id, or several have the id.
    """
    if Path(name).is_file():
        return Path(name).absolute()
    found = [path for path, known in _campaign_ids(repository) if known == name]
    if len(found) == 1:
        return found[0]
    raise NotFound(
        Problem(
            Code.AMBIGUOUS if found else Code.NOT_FOUND,
            name,
            "the path or the id of one campaign file",
            ", ".join(str(path) for path in found) or "neither",
            "name the file",
        )
    )


def frozen_packets(roots: tuple[Roots, ...]) -> tuple[FrozenPacket, ...]:
    """Every packet of some authorization roots, in the order of attempts."""
    found = [
        FrozenPacket(open_packet(folder), folder, root)
        for root in roots
        for folder in _packet_folders(root)
        if folder.packet.is_file()
    ]
    return tuple(sorted(found, key=lambda frozen: (frozen.packet.preregistration.id, frozen.packet.attempt)))


def packet_by_id(text: str, roots: tuple[Roots, ...]) -> FrozenPacket | None:
    """The packet whose id is, or uniquely starts with, at least eight hex digits; None where the text is no such id.

    Raises:
        NotFound: several packets start with the text.
    """
    if not PACKET_PREFIX.match(text):
        return None
    found = [frozen for frozen in frozen_packets(roots) if frozen.packet.id.startswith(text)]
    if len(found) > 1:
        ids = ", ".join(frozen.packet.id for frozen in found)
        raise NotFound(Problem(Code.AMBIGUOUS, text, "one packet", ids, "give more digits"))
    return found[0] if found else None


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


def _campaign_ids(repository: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(repository.glob("**/campaigns/*/*.yaml")):
        try:
            yield path, load_preregistration(path).model.id
        except LabctlError:  # an invalid file has no id that could be meant; `prereg validate` says what is wrong with it
            continue


def _packet_folders(roots: Roots) -> list[PacketPaths]:
    folder = roots.authorization.packets
    return [PacketPaths(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []
