"""Where a campaign's machine paths lie: the host profile's keys, resolved against the top of the campaign repository."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.errors import NotFound, Problem
from labctl.prereg.host_profile import HostProfile
from labctl.rundir import AuthorizationPaths

THIS_INTERPRETER = "self"


@dataclass(frozen=True, slots=True)
class Roots:
    """The four roots of one host profile, absolute."""

    repository: Path
    """The top of the campaign repository."""
    authorization: AuthorizationPaths
    """Packets, markers, ledger."""
    runs: Path
    """Runs."""
    analyses: Path
    """Analyses."""
    scratch: Path
    """Snapshots and the private folders of starts."""
    anchor: Path
    """The folder up to which ownership and modes are checked."""

    @classmethod
    def of_profile(cls, profile: HostProfile, repository: Path) -> "Roots":
        """The roots for real campaigns."""
        return cls(
            repository=repository,
            authorization=AuthorizationPaths(repository / profile.roots.authorization),
            runs=repository / profile.roots.runs,
            analyses=repository / profile.roots.analyses,
            scratch=repository / profile.roots.scratch,
            anchor=(repository / profile.storage.trusted_anchor).resolve(),
        )

    def for_rehearsals(self) -> "Roots":
        """The same machine, with a runs root and an authorization root that only rehearsals use."""
        folder = self.runs / "rehearsals"
        return Roots(
            repository=self.repository,
            authorization=AuthorizationPaths(folder / "authorization"),
            runs=folder,
            analyses=self.analyses,
            scratch=self.scratch,
            anchor=self.anchor,
        )


def machine_path(repository: Path, path: str) -> Path:
    """A path of the host profile: absolute, or relative to the top of the campaign repository."""
    return repository / path


def interpreter_path(profile: HostProfile, key: str, repository: Path) -> Path:
    """The interpreter that a key names; `self` is the one that runs labctl."""
    named = profile.interpreters[key]
    return Path(sys.executable) if named == THIS_INTERPRETER else machine_path(repository, named)


def repository_top(start: Path) -> Path:
    """The top of the git work tree that holds a path.

    Raises:
        NotFound: the path is in no work tree.
    """
    folder = start if start.is_dir() else start.parent
    answer = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--show-toplevel"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C.UTF-8"},
    )
    if answer.returncode != 0:
        raise NotFound(
            Problem(
                Code.NOT_FOUND,
                str(start),
                "a path in a git work tree",
                "none",
                "run `git init` and commit the campaign, or change into its repository",
            )
        )
    return Path(answer.stdout.rstrip("\n"))
