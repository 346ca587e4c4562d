"""The files that a preregistration names, below one root, and the problems met in reading them."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from labctl.codes import Code
from labctl.errors import InvalidPreregistration, Problem
from labctl.frozen import FrozenModel
from labctl.prereg.campaign_file import Attempt, Loaded
from labctl.prereg.finding import Finding, before_others
from labctl.prereg.places import TreePath
from labctl.prereg.sources import GitSource, Source

NamedT = TypeVar("NamedT", bound=FrozenModel)
CampaignT = TypeVar("CampaignT")
PreregistrationT = TypeVar("PreregistrationT", bound=FrozenModel)
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(slots=True)
class NamedFiles(Generic[PreregistrationT]):
    """The preregistration, the root that its paths start from, and every problem so far."""

    preregistration: Loaded[PreregistrationT]
    root: Path
    problems: list[Problem]

    def read(self, key: TreePath, name: str, reader: Callable[[Path], Attempt[NamedT]]) -> Attempt[NamedT]:
        """What reading a file gave that the value at a key names; nothing where the file is not there."""
        if not self._is_here(key, name):
            self.problems[-1] = before_others(self.problems[-1])
            return Attempt(None, ())
        attempt = reader(self.root / name)
        self.problems += attempt.problems
        return attempt

    def here(self, key: TreePath, name: str | None) -> Path | None:
        """The path of a file that the value at a key names, if it is there; its content is not looked at."""
        return self.root / name if name is not None and self._is_here(key, name) else None

    def series(self, key: TreePath, name: str | None) -> tuple[Path, ...]:
        """The patches in a folder that the value at a key names, in the order in which they are applied."""
        if name is None or not self._is_inside(key, name):
            return ()
        folder = self.root / name
        patches = tuple(sorted(folder.glob("*.patch"))) if folder.is_dir() else ()
        if not patches or not all(path.is_file() and _SAFE_NAME.fullmatch(path.name) for path in patches):
            where, expected = self.preregistration.places.of_value(key), "a folder of files with plain names *.patch"
            got = f"{name}, with {len(patches)} of them" if folder.is_dir() else f"{name}, which is no folder"
            do = "write the series with `git format-patch BASE..COMMIT -o FOLDER`"
            self.problems.append(Problem(Code.BAD_PATH, where, expected, got, do))
        return patches

    def patches(self, sources: Iterable[Source]) -> dict[int, tuple[Path, ...]]:
        """The patches of each source that is a git commit, by the source's place in its list."""
        return {
            index: self.series(("sources", index, "patches"), source.patches)
            for index, source in enumerate(sources)
            if isinstance(source, GitSource)
        }

    def _is_here(self, key: TreePath, name: str) -> bool:
        if not self._is_inside(key, name):
            return False
        got = _other_than_file(self.root / name)
        if got is not None:
            where = self.preregistration.places.of_value(key)
            expected, do = f"a file below {self.root.name}/", "correct the path, or write the file"
            if (self.preregistration.path.parent / name).exists():  # so it lies beside the others, and not in a folder
                do = "give the campaign file a folder of its own: its paths start at the folder above"
            self.problems.append(Problem(Code.BAD_PATH, where, expected, f"{name}, where there is {got}", do))
        return got is None

    def _is_inside(self, key: TreePath, name: str) -> bool:
        where = self.preregistration.places.of_value(key)
        if not (self.root / name).resolve().is_relative_to(self.root.resolve()):
            expected, do = f"a path inside {self.root.name}/", "copy the file into the campaign repository"
            self.problems.append(Problem(Code.BAD_PATH, where, expected, f"{name}, a link that leaves it", do))
            return False
        return True

    def add(self, findings: Iterator[Finding]) -> None:
        """Note what contradicts the preregistration, at its place there."""
        self.problems += [finding.at(self.preregistration.places) for finding in findings]

    def refuse(self) -> NoReturn:
        """End here.

        Raises:
            InvalidPreregistration: with every problem, the preregistration's own first.
        """
        raise InvalidPreregistration(_by_file(self.problems))


def with_files(
    attempt: Attempt[PreregistrationT],
    root: Path | None,
    find: Callable[[NamedFiles[PreregistrationT]], CampaignT | None],
) -> CampaignT:
    """The campaign that `find` makes of a preregistration and the files that it names.

    Raises:
        InvalidPreregistration: with every problem of all files.
    """
    loaded = attempt.loaded or attempt.required()
    files = NamedFiles(loaded, root or loaded.campaigns_root, list(attempt.problems))
    campaign = find(files)
    if files.problems or campaign is None:
        files.refuse()
    return campaign


def _other_than_file(path: Path) -> str | None:
    if path.is_symlink():
        return "a symbolic link"
    if not path.exists():
        return "nothing"
    return None if path.is_file() else "something else"


def _by_file(problems: list[Problem]) -> list[Problem]:
    own = list(dict.fromkeys(problem.where.rsplit(":", 2)[0] for problem in problems))

    def place(problem: Problem) -> tuple[int, int, int]:
        file, line, column = problem.where.rsplit(":", 2)
        return own.index(file), int(line), int(column)

    return sorted(dict.fromkeys(problems), key=place)
