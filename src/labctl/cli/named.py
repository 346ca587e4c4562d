"""From what an operator types for a run to its folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from labctl.cli import show

if TYPE_CHECKING:
    from labctl.campaign.roots import Roots


def run_named(text: str) -> Path:
    """The folder of a run, given its path or its name; host profiles that cannot be read are told on stderr.

    Raises:
        NotFound: there is no such folder, and no run of this machine has the name.
    """
    from labctl.campaign.lookup import run_folder
    from labctl.errors import NotFound
    from labctl.packet.git_command import find_repository

    if Path(text).is_dir():
        return Path(text).absolute()
    try:
        roots = roots_here(find_repository(Path.cwd()))
    except NotFound:
        roots = ()
    return run_folder(text, roots)


def roots_here(repository: Path) -> "tuple[Roots, ...]":
    """The roots of every host profile that can be read; what is wrong with the others is told on stderr."""
    from labctl.campaign.lookup import readable_roots

    known = readable_roots(repository)
    for problem in known.problems:
        show.error(str(problem))
    return known.roots
