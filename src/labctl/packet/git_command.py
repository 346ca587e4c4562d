"""Run git with nothing ambient, and refuse repositories that hide something from plain object reading."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from labctl.codes import Code
from labctl.errors import DirtySource, NotFound, Problem

_TIMEOUT_S = 300
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@'\"]+@")
_CONFIG = ("core.fsmonitor=false", "core.commitGraph=false", "core.hooksPath=/dev/null", "core.pager=cat")


def find_repository(path: Path) -> Path:
    """The top of the git work tree that holds a path: the nearest folder with a `.git`.

    Raises:
        NotFound: the path is in no work tree (NOT_FOUND).
    """
    start = path.absolute()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    do = "run `git init` and commit the campaign, or change into its repository"
    raise NotFound(Problem(Code.NOT_FOUND, str(path), "a path in a git work tree", "none", do))


def git_arguments(repository: Path) -> list[str]:
    """The start of every git command line: no replace objects, no configured programs, this repository alone."""
    # ownership is no concern here: every object that git gives is hashed again
    settings = [part for setting in (*_CONFIG, f"safe.directory={repository}") for part in ("-c", setting)]
    return ["git", "--no-replace-objects", "--no-pager", *settings, "-C", str(repository)]


def git_environment() -> dict[str, str]:
    """The whole environment of a git process: no GIT_ variable of ours, no system or user configuration."""
    # a remote that asks for a key is reached through the agent; which objects a repository has does not depend on it
    agent = {name: os.environ[name] for name in ("SSH_AUTH_SOCK",) if name in os.environ}
    return agent | {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def run_git(repository: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """What a git command prints.

    Raises:
        DirtySource: the command failed, or did not end (BAD_COMMIT).
    """
    where, do = f"{repository}: git {arguments[0]}", "repair the repository, or clone it again"
    try:
        answer = subprocess.run(
            [*git_arguments(repository), *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
            env=git_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise DirtySource(Problem(Code.BAD_COMMIT, where, "an answer", f"none in {_TIMEOUT_S} s", do)) from error
    if answer.returncode != 0:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {answer.returncode}"]
        got = repr(without_userinfo(lines[-1])[:160])
        raise DirtySource(Problem(Code.BAD_COMMIT, where, "an answer", got, do))
    return answer.stdout


def without_userinfo(text: str) -> str:
    """A text whose URLs name no user and no password: what labctl writes down is published."""
    return _USERINFO.sub(r"\1[removed]@", text)


def refuse_hidden_state(repository: Path) -> None:
    """Refuse replace refs, grafts, alternates, and shallow or partial clones.

    Raises:
        DirtySource: with everything that was found (HIDDEN_GIT_STATE).
    """
    found = tuple(_hidden_state(repository))
    if found:
        raise DirtySource(
            Problem(Code.HIDDEN_GIT_STATE, str(repository), "a repository that holds all its objects itself", got, do)
            for got, do in found
        )


def _hidden_state(repository: Path) -> Iterator[tuple[str, str]]:
    common = Path(os.fsdecode(run_git(repository, "rev-parse", "--git-common-dir").rstrip(b"\n")))
    common = common if common.is_absolute() else repository / common
    replaced = run_git(repository, "for-each-ref", "--format=%(refname)", "refs/replace/").decode().split()
    if replaced:
        yield f"{len(replaced)} replace refs", "delete them with `git replace -d`"
    if _has_text(common / "info" / "grafts"):
        yield "grafts", "remove .git/info/grafts"
    if _has_text(common / "objects" / "info" / "alternates"):
        yield "alternate object folders", "run `git repack -a -d` and remove .git/objects/info/alternates"
    if (common / "shallow").exists():
        yield "a shallow clone", "run `git fetch --unshallow`"
    if any((common / "objects" / "pack").glob("*.promisor")) or _is_partial(repository):
        yield "a partial clone", "clone it again without --filter"


def _is_partial(repository: Path) -> bool:
    names = run_git(repository, "config", "--list", "--name-only").decode("utf-8", "replace").lower().split("\n")
    return any(name == "extensions.partialclone" or name.endswith(".promisor") for name in names)


def _has_text(path: Path) -> bool:
    return path.is_file() and bool(path.read_bytes().strip())
