"""Where things stand in a campaign file: the line and column of every key and every value."""

from collections.abc import Mapping
from typing import NamedTuple

TreePath = tuple[str | int, ...]


class Spot(NamedTuple):
    """A line and a column, both counted from 1."""

    line: int
    column: int


START = Spot(1, 1)


class Places(NamedTuple):
    """The spots of one file's keys and values, by their path in the tree."""

    file: str
    keys: Mapping[TreePath, Spot]
    values: Mapping[TreePath, Spot]

    def of_value(self, path: TreePath) -> str:
        """`file:line:column` of the value at a path, or of the nearest thing around it that exists."""
        while path and path not in self.values:
            path = path[:-1]
        return self.at(self.values.get(path, START))

    def of_key(self, path: TreePath) -> str:
        """`file:line:column` of the key at a path, or of the value where it has no key."""
        if path in self.keys:
            return self.at(self.keys[path])
        return self.of_value(path)

    def at(self, spot: Spot) -> str:
        """`file:line:column` of a spot."""
        return f"{self.file}:{spot.line}:{spot.column}"


def no_places(file: str) -> Places:
    """The places of a file that has no lines worth naming."""
    return Places(file, {}, {})
