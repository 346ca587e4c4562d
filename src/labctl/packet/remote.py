"""Whether a commit can be seen by others: it is, or lies behind, a tip of a named remote."""

from pathlib import Path

from labctl.errors import DirtySource
from labctl.packet.git_command import run_git


def is_on_remote(repository: Path, commit: str, remote: str) -> bool:
    """Whether a tip that the remote shows now is the commit or descends from it."""
    try:
        shown = run_git(repository, "ls-remote", "--heads", "--tags", remote).decode("utf-8", "replace")
    except DirtySource:
        return False
    tips = {line.split("\t")[0] for line in shown.splitlines()}
    return any(tip == commit or _descends(repository, tip, commit) for tip in tips)


def _descends(repository: Path, tip: str, commit: str) -> bool:
    try:
        run_git(repository, "merge-base", "--is-ancestor", commit, tip)
    except DirtySource:
        return False
    return True
