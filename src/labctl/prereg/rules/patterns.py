"""Rules for regular expressions: they compile as byte patterns, and each matches the line that it was made for."""

import re
from collections.abc import Iterator

from labctl.codes import Code
from labctl.prereg.finding import Finding
from labctl.prereg.places import TreePath
from labctl.prereg.rules.backtracking import may_never_end


def pattern_findings(path: TreePath, names: tuple[str, str], texts: tuple[str, str]) -> Iterator[Finding]:
    """What is wrong with a pattern and its example, given their keys and their texts."""
    pattern, example = texts
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        where = (*path, names[0])
        yield Finding(where, "a regular expression", compiled, "correct the expression", Code.WRONG_VALUE)
    elif compiled.search(b""):
        where = (*path, names[0])
        yield Finding(where, "an expression that not every line matches", repr(pattern), "narrow the expression")
    elif may_never_end(pattern):
        where = (*path, names[0])
        do = "make the inner repeat possessive, as in `a++`, or let a text end each turn of the outer one"
        yield Finding(where, "no repeat in a repeat that nothing ends", repr(pattern), do)
    elif not compiled.search(example.encode()):
        where = (*path, names[1])
        yield Finding(where, f"a line that {pattern!r} matches", repr(example), "correct the example or the expression")


def matches(pattern: str, line: str) -> bool:
    """Whether a pattern that is sound matches somewhere in a line."""
    compiled = _compiled(pattern)
    if isinstance(compiled, str) or compiled.search(b"") or may_never_end(pattern):
        return False
    return bool(compiled.search(line.encode()))


def _compiled(pattern: str) -> re.Pattern[bytes] | str:
    try:
        return re.compile(pattern.encode())
    except re.error as error:
        return str(error)
