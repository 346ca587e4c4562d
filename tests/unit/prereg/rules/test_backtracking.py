"""Expressions that a line could hold up for hours are told from those that only look like it."""

import time

import pytest

from labctl.prereg.rules.backtracking import may_never_end
from labctl.prereg.rules.patterns import matches, pattern_findings

ENDLESS = [
    r"(a+)+$", r"(?:a+)*b", r"(?P<names>\w+\s*)+:", r"(.*)*x", r"(?:.+)+x", r"((?:[0-9]+(?:, )?)+)x", r"(a|b+)+c",
    r"(?i:a+)+b", r"(?:[^ ]* ?)*!", r"(a?){30}b", r"(a{1,50}){1,50}b", r"(?:\S+\w)+ end", r"(a+?)+b", r"x(?=(a+)+b)",
    r"(?>(a+)+b)", r"x(?!(?:a+)+b)", r"(?:(?:a+)+b)?c",
]  # fmt: skip
SOUND = [
    r"graphs=[0-9]+, eager_breaks=[0-9]+", r"(?:[0-9]+, )+x", r"(?>a+)+b", r"(a++)+b", r"(?:ab?)+", r"(?:a|b)*c",
    r"rank (?P<rank>[0-9]+).*graphs=(?P<graphs>[0-9]+)", r"(?:\[[^\]]*\])+x", r"(?: *[0-9])+", r"^(?!.*at stop).*ERROR",
    r"(a+){2,3}b", r"(?:[a-z]{3} )+x", r"(a)\1+", r"(?:\w+\.)*\w+", r"(?:\d+\D)+x", r"(?:key=.{4};)+",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_repeat_of_turns_that_nothing_ends_is_found(pattern: str) -> None:
    assert may_never_end(pattern)


@pytest.mark.parametrize("pattern", SOUND)
def test_repeats_whose_turns_end_somewhere_are_left_alone(pattern: str) -> None:
    assert not may_never_end(pattern)


def test_an_endless_expression_is_refused_before_it_is_tried_on_anything() -> None:
    line = "a" * 60 + "b"
    before_s = time.monotonic()
    (found,) = pattern_findings(("deny",), ("pattern", "example"), (r"(a+)+$", line))
    assert matches(r"(a+)+$", line) is False
    assert time.monotonic() - before_s < 5
    assert found.path == ("deny", "pattern")
    assert "possessive" in found.do
