"""Running a leg: its private folders go when it has ended."""

import shutil

from labctl.codes import Code
from labctl.errors import Problem


def remove_private_folders(scratch: str) -> tuple[Problem, ...]:
    """Remove a leg's folder outside the run, and say why where it cannot be removed."""
    try:
        shutil.rmtree(scratch)
    except OSError as error:
        got = f"{error.filename}: {error.strerror}"
        return (Problem(Code.LEFTOVER, scratch, "a folder that can be removed", got, "remove it by hand"),)
    return ()
