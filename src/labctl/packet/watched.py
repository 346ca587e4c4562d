"""Folders in which every file of a kind is watched, walked cheaply: it is done between starts."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


class Depth(Enum):
    """How far down a folder is looked at."""

    FOLDER = auto()
    TREE = auto()


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder, and the endings of the names that count in it; no endings: every name."""

    path: str
    suffixes: tuple[str, ...] = ()
    depth: Depth = Depth.TREE


def files_below(folder: WatchedFolder) -> Iterator[str]:
    """Every path of the kind that is no folder, in no order; a folder that is not there holds none.

    A link counts as a file and is not followed: what it leads to is for the reader of the path to say.
    """
    waiting = [folder.path]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting += [entry.path] if folder.depth is Depth.TREE else []
                elif not folder.suffixes or entry.name.endswith(folder.suffixes):
                    yield entry.path
