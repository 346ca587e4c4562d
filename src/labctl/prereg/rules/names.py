"""A rule for lists: each name once."""

from collections.abc import Iterator, Sequence

from labctl.prereg.finding import Finding
from labctl.prereg.places import TreePath


def repeated(field: TreePath, rest: TreePath, names: Sequence[str]) -> Iterator[Finding]:
    """Each name of a list that stands there a second time.

    Args:
        field: the path of the list.
        rest: the path of the name within one item.
        names: the names, in order.
    """
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Finding((*field, index, *rest), "each name once", f"{name} again", "remove or rename it")
