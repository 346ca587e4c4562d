"""Which commit labctl's own files come from, where they lie in a git work tree that tracks them."""

from pathlib import Path

from labctl.errors import DirtySource, NotFound
from labctl.frozen import FrozenModel, GitCommit
from labctl.packet.git_command import find_repository, run_git


class OwnCommit(FrozenModel):
    """The commit behind labctl's files; the digests beside it decide, this says where to look them up."""

    commit: GitCommit | None
    """The work tree's commit; null where no work tree tracks the files, such as an installed wheel."""
    is_clean: bool
    """Whether the files are those of the commit."""


NOT_TRACKED = OwnCommit(commit=None, is_clean=False)


def read_own_commit(package: Path) -> OwnCommit:
    """The commit that a package's files come from."""
    try:
        repository = find_repository(package)
        run_git(repository, "ls-files", "--error-unmatch", "--", str(package / "__init__.py"))
        commit = run_git(repository, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
        changed = run_git(repository, "status", "--porcelain", "--untracked-files=all", "--", str(package))
    except (DirtySource, NotFound, OSError):
        return NOT_TRACKED
    return OwnCommit(commit=commit, is_clean=not changed)
