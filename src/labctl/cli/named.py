"""From what an operator types for a run or a new file to its place."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.cli import show

if TYPE_CHECKING:
    from labctl.campaign.roots import Roots


def run_named(text: str) -> Path:
    """The folder of a run, given its path or its name; host profiles that cannot be read are told on stderr.

    Raises:
        NotFound: there is no such folder, and no run of this machine has the name.
        SealInvalid: the folder holds no part of a sealed run (UNSEALED).
    """
    from labctl.campaign.lookup import run_folder
    from labctl.errors import NotFound
    from labctl.packet.git_command import find_repository

    if Path(text).is_dir():
        return _with_part_of_a_run(Path(text).absolute())
    try:
        roots = roots_here(find_repository(Path.cwd()))
    except NotFound:
        roots = ()
    return run_folder(text, roots)


def require_place_for(out: Path) -> None:
    """Refuse a new file whose folder does not exist, before anything is read for it.

    Raises:
        NotFound: there is no such folder.
    """
    from labctl.codes import Code
    from labctl.errors import NotFound, Problem

    if not out.absolute().parent.is_dir():
        do = "make the folder, or name another place"
        raise NotFound(Problem(Code.NOT_FOUND, f"--out {out}", "a folder that exists", "none of this name", do))


def _with_part_of_a_run(folder: Path) -> Path:
    from labctl.codes import Code
    from labctl.errors import Problem, SealInvalid
    from labctl.rundir import MANIFEST, SEAL, RunPaths

    if not any(os.path.lexists(path) for path in (folder / MANIFEST, folder / SEAL, RunPaths(folder).data)):
        got, do = "a folder with no part of one", "name the folder or the name of a run; see `labctl runs list`"
        raise SealInvalid(Problem(Code.UNSEALED, str(folder), "a sealed run", got, do))
    return folder


def roots_here(repository: Path) -> "tuple[Roots, ...]":
    """The roots of every host profile that can be read; what is wrong with the others is told on stderr."""
    from labctl.campaign.lookup import readable_roots

    known = readable_roots(repository)
    for problem in known.problems:
        show.error(str(problem))
    return known.roots
