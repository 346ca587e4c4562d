"""One campaign file as it was found: its exact bytes, what they say, and every problem of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, InvalidPreregistration, Problem
from labctl.frozen import FrozenModel
from labctl.prereg.places import Places
from labctl.prereg.source_text import MAX_FILE_BYTES

FileT = TypeVar("FileT", bound=FrozenModel)
LoadedT_co = TypeVar("LoadedT_co", bound=FrozenModel, covariant=True)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[LoadedT_co]):
    """A campaign file that was read and found right, with its exact bytes."""

    model: LoadedT_co
    path: Path
    data: bytes
    sha256: str
    places: Places

    @property
    def campaigns_root(self) -> Path:
        """The folder that the paths in a preregistration start from: the parent of the file's folder."""
        return self.path.absolute().parent.parent


class Attempt(NamedTuple, Generic[LoadedT_co]):
    """A file that was read, and every problem found in it; with problems, `loaded` may be a guess at what was meant."""

    loaded: Loaded[LoadedT_co] | None
    problems: tuple[Problem, ...]

    def required(self) -> Loaded[LoadedT_co]:
        """The file, if nothing is wrong with it.

        Raises:
            InvalidPreregistration: with every problem.
        """
        if self.problems or self.loaded is None:
            raise InvalidPreregistration(self.problems)
        return self.loaded


def attempt(path: Path, data: bytes, read: tuple[FileT | None, Places, tuple[Problem, ...]]) -> Attempt[FileT]:
    """What reading gave, with the bytes that were read."""
    model, places, problems = read
    return Attempt(None if model is None else Loaded(model, path, data, sha256_hex(data), places), problems)


def read_campaign_file(path: Path, *, limit_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a campaign file.

    Raises:
        InvalidPreregistration: absent, not a regular file (BAD_PATH), or too large.
    """
    try:
        return read_regular(path, limit_bytes=limit_bytes)
    except BrokenEvidence as error:
        do = f"name a file in it, such as {path / 'campaign.yaml'}" if path.is_dir() else "name a file that can be read"
        raise InvalidPreregistration(
            Problem(
                Code.TOO_LARGE if problem.code is Code.TOO_LARGE else Code.BAD_PATH,
                f"{shown_path(path)}:1:1",
                problem.expected,
                problem.got,
                "shorten the file" if problem.code is Code.TOO_LARGE else do,
            )
            for problem in error.problems
        ) from error


def shown_path(path: Path) -> str:
    """A path as messages show it: relative to the working folder where it lies below."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)
