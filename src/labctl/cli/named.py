"""From what an operator types for a run to its folder."""

from pathlib import Path


def run_named(text: str) -> Path:
    """The folder of a run, given its path or its name.

    Raises:
        NotFound: there is no such folder, and no run of this machine has the name.
    """
    from labctl.campaign.lookup import known_roots, run_folder
    from labctl.errors import NotFound
    from labctl.packet.git_command import find_repository

    if Path(text).is_dir():
        return Path(text).absolute()
    try:
        roots = known_roots(find_repository(Path.cwd()))
    except NotFound:
        roots = ()
    return run_folder(text, roots)
