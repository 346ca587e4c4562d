"""Whether a search by a regular expression may take a time that doubles with each byte of a line.

That is so where a repeat stands in a repeat and nothing tells where a turn of the outer one ends: the bytes of a line
can then be shared out between the turns in ever more ways, and a search that finds nothing tries all of them. An
analyzer that is stopped by a line of a log is stopped after the packet is spent, so such an expression is refused.
"""

import re
from collections.abc import Iterator
from re import _constants as op  # type: ignore[attr-defined] # the standard library's own reading, and the only true one
from re import _parser as grammar  # type: ignore[attr-defined]
from typing import Any

SAFE_TURNS = 8
EVERY_BYTE = frozenset(range(256))
NOTHING: frozenset[int] = frozenset()
REPEATS = frozenset({op.MAX_REPEAT, op.MIN_REPEAT})
FINAL = frozenset({op.ATOMIC_GROUP, op.POSSESSIVE_REPEAT, op.ASSERT, op.ASSERT_NOT})
"""What has matched once is not shared out again."""
ONE_BYTE = frozenset({op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN})
CATEGORIES = {
    op.CATEGORY_DIGIT: rb"\d", op.CATEGORY_NOT_DIGIT: rb"\D", op.CATEGORY_SPACE: rb"\s",
    op.CATEGORY_NOT_SPACE: rb"\S", op.CATEGORY_WORD: rb"\w", op.CATEGORY_NOT_WORD: rb"\W",
}  # fmt: skip
Node = tuple[Any, Any]


def may_never_end(pattern: str) -> bool:
    """Whether an expression, which compiles, holds a repeat of turns whose ends nothing tells."""
    repeats = (argument for kind, argument in _every(grammar.parse(pattern.encode())) if kind in REPEATS)
    return any(most > SAFE_TURNS and _is_undelimited([*_flat(body)]) for _, most, body in repeats)


def _is_undelimited(turn: list[Node]) -> bool:
    varying = [node for node in turn if _varies(node)]
    taken = NOTHING.union(*map(_bytes_of, varying))
    return bool(varying) and not any(_bytes_of(node).isdisjoint(taken) for node in turn if node[0] in ONE_BYTE)


def _varies(node: Node) -> bool:
    kind, argument = node
    if kind in FINAL:
        return False
    is_open = kind in REPEATS and argument[0] != argument[1]
    return is_open or any(_varies(one) for nodes in _below(node) for one in nodes)


def _flat(nodes: Any) -> Iterator[Node]:  # noqa: ANN401 (a parsed expression has no public type)
    """The items of a sequence, with plain groups opened."""
    for kind, argument in nodes:
        if kind is op.SUBPATTERN:
            yield from _flat(argument[-1])
        else:
            yield kind, argument


def _every(nodes: Any) -> Iterator[Node]:  # noqa: ANN401 (the parser's own)
    """Every node, at any depth."""
    for node in nodes:
        yield node
        for below in _below(node):
            yield from _every(below)


def _below(node: Node) -> tuple[Any, ...]:
    kind, argument = node
    if kind is op.SUBPATTERN or kind in REPEATS or kind in FINAL:
        return (argument[-1],) if isinstance(argument, tuple) else (argument,)
    if kind is op.BRANCH:
        return tuple(argument[1])
    return ()


def _bytes_of(node: Node) -> frozenset[int]:
    """Every byte that an item may take."""
    kind, argument = node
    if kind is op.IN:
        return _bytes_of_class(argument)
    if kind is op.LITERAL:
        return frozenset({argument})
    if kind is op.ANY:
        return EVERY_BYTE
    if kind is op.NOT_LITERAL:
        return EVERY_BYTE - {argument}
    below = [_bytes_of(one) for nodes in _below(node) for one in nodes]
    return NOTHING.union(*below) if below or kind is op.AT else EVERY_BYTE


def _bytes_of_class(items: list[Node]) -> frozenset[int]:
    found = NOTHING.union(*(_bytes_of_item(one) for one in items if one[0] is not op.NEGATE))
    return EVERY_BYTE - found if items[0][0] is op.NEGATE else found


def _bytes_of_item(item: Node) -> frozenset[int]:
    kind, argument = item
    if kind is op.RANGE:
        return frozenset(range(argument[0], argument[1] + 1))
    if kind is op.CATEGORY:
        category = re.compile(CATEGORIES[argument])
        return frozenset(byte for byte in EVERY_BYTE if category.match(bytes([byte])))
    return frozenset({argument})
