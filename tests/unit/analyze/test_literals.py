"""The texts that a match needs: in every line that matches, one of them stands."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labctl.analyze.literals import needed_literals

READ = [
    ("not compiled", {b"not compiled"}),
    (r"Traceback \(most recent call last\)", {b"Traceback (most recent call last)"}),
    (r"\b(?:ERROR|CRITICAL) [0-9]{2}-", {b"ERROR", b"CRITICAL"}),
    (r"[Ff]alling back|[Uu]sing fallback|\bfallback to\b", {b"alling back", b"sing fallback", b"fallback to"}),
    (r"^(?!.*\[async_llm\.py:[0-9]+\]).*Traceback", {b"Traceback"}),
    (r"graphs=(?P<graphs>[0-9]+), eager_breaks=", {b", eager_breaks="}),
    ("colou?r", {b"colo"}),
    ("abc+d", {b"abc"}),
    ("ab{0,3}cde", {b"cde"}),
    (r"a\.b", {b"a.b"}),
    ("größe", {"größe".encode()}),
]
UNREAD = ["a|", "(abc)?", "(?i)error", "[abc]", r"\d+", r"\x41bc", "x*", "a{0}", "(?=abc)", "(?P<n>ab)(?P=n)"]
PLAIN = ["a", "b", "ab", r"\.", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$"]
ATOMS = st.sampled_from([*PLAIN, "(a)", "(?:ab|b)", "(?P<n>a|.b)", "(?=a)", "(?!b)"])
PATTERNS = st.lists(
    st.lists(st.tuples(ATOMS, st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{0,1}", "??"])), max_size=5),
    min_size=1,
    max_size=3,
).map(lambda branches: "|".join("".join(atom + often for atom, often in branch) for branch in branches))


@pytest.mark.parametrize(("pattern", "found"), READ)
def test_texts_are_read_off_an_expression(pattern: str, found: set[bytes]) -> None:
    assert needed_literals(pattern) == found


@pytest.mark.parametrize("pattern", UNREAD)
def test_an_expression_that_needs_none_or_is_not_understood_has_none(pattern: str) -> None:
    assert needed_literals(pattern) == frozenset()


@given(PATTERNS, st.text("ab.", max_size=8))
@example("(?:ab|b){2}", "abb")
def test_a_line_that_matches_holds_one_of_them(pattern: str, line: str) -> None:
    try:
        compiled = re.compile(pattern.encode())
    except re.error:
        return
    literals = needed_literals(pattern)
    if literals and compiled.search(line.encode()):
        assert any(literal in line.encode() for literal in literals)
