"""Words for messages."""

import pytest

from labctl.prereg.words import nearest, shown


def test_the_nearest_word_is_found_and_a_far_one_is_not() -> None:
    assert nearest("tretment", ["treatment", "service"]) == "treatment"
    assert nearest("xyz", ["treatment", "service"]) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ({}, "an empty mapping"),
        ({"a": 1}, "a mapping"),
        ([], "an empty list"),
        ([1, 2], "a list of 2"),
        (7, "7"),
        (1.5, "1.5"),
        ("a\nb", "'a b'"),
    ],
)
def test_values_are_shown_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text


def test_long_text_is_cut() -> None:
    assert shown("x" * 100) == f"'{'x' * 60}…'"
