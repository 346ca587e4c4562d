"""A rule for named cards, in campaigns and host profiles."""

from collections.abc import Iterator

from labctl.prereg.cards import Cards
from labctl.prereg.finding import Finding
from labctl.prereg.places import TreePath
from labctl.prereg.rules.names import repeated


def named_cards_are_counted(path: TreePath, cards: Cards) -> Iterator[Finding]:
    """Named cards are as many as the count, and none is named twice."""
    if isinstance(cards.identities, str):
        return
    names: TreePath = (*path, "identities")
    if len(cards.identities) != cards.count:
        do = "name each card, or write discover"
        yield Finding(names, f"{cards.count} cards, as `count` says", str(len(cards.identities)), do)
    yield from repeated(names, (), cards.identities)
