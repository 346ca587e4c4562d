"""From bytes to visible text."""

import pytest

from labctl.codes import Code
from labctl.prereg.source_text import MAX_COMPLAINTS, MAX_FILE_BYTES, guessed_lines, hidden_character, read_text


def test_plain_text_is_given_as_it_is() -> None:
    assert read_text("a: ü 漢\n".encode(), "f") == ("a: ü 漢\n", [])


def test_a_bad_byte_is_named_with_its_place() -> None:
    text, (problem,) = read_text(b"ab\ncd\xfe\n", "f")
    assert text is None
    assert (problem.code, problem.where, problem.got) == (Code.NOT_TEXT, "f:2:3", "the byte 0xfe")


def test_a_file_over_the_limit_is_not_read() -> None:
    text, (problem,) = read_text(b" " * (MAX_FILE_BYTES + 1), "f")
    assert text is None
    assert problem.code is Code.TOO_LARGE


def test_each_kind_of_character_is_named_once_where_it_stands_first_with_the_count_of_its_lines() -> None:
    _, problems = read_text(b"a\r\rb\r\n" * 30 + b"\tx\r\n" + b"y\x00\n", "f")
    assert [(problem.where, problem.got) for problem in problems] == [
        ("f:1:2", "U+000D in 31 lines, first here"),
        ("f:31:1", "U+0009"),
        ("f:32:2", "U+0000"),
    ]


def test_no_more_than_twenty_kinds_are_named() -> None:
    every = "".join(map(chr, range(0x80, 0xA0)))
    assert len(read_text(every.encode(), "f")[1]) == MAX_COMPLAINTS


def test_blanks_stand_in_for_what_was_refused_so_that_reading_goes_on() -> None:
    assert read_text(b"\xef\xbb\xbfa:\t1\r\n", "f")[0] == "a: 1 \n"


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x7f", "\x9b", "\u200f", "\u2067", "\u2028", "\ufeff", "\ud800"]
)
def test_hidden_characters_are_found_in_values(character: str) -> None:
    assert hidden_character(f"a{character}b") == f"U+{ord(character):04X}"


def test_line_ends_and_tabs_make_no_line_a_guess() -> None:
    assert guessed_lines("\ufeffa:\t1\r\nb: \x00\r\nc: 1\n") == {2}


def test_line_feeds_and_tabs_may_stand_in_values() -> None:
    assert hidden_character("a\n\tb") is None
