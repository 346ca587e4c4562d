"""Printing."""

import json

import pytest

from labctl.cli import show


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\nb\r\t\x00\x1b[31m", "a\\x0ab\\x0d\\x09\\x00\\x1b[31m"),
        ("\x7f\x85\x9b", "\\x7f\\x85\\x9b"),
        ("\u2028\u2029\u202e\u2066\u200f\u061c\ufeff", "\\u2028\\u2029\\u202e\\u2066\\u200f\\u061c\\ufeff"),
        ("\ud800", "\\ud800"),
        ("ü 漢 🙂", "ü 漢 🙂"),
    ],
)
def test_characters_that_move_or_hide_text_are_spelt_out(text: str, safe: str) -> None:
    assert show.escaped(text) == safe


def test_results_go_to_stdout_and_the_rest_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show.line("a\x1b")
    show.lines("b\nc\x07\n")
    show.error("d\u202e")
    show.progress("e")
    captured = capsys.readouterr()
    assert captured.out == "a\\x1b\nb\nc\\x07\n"
    assert captured.err == "d\\u202e\ne\n"


def test_json_is_ascii_and_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"b": "\u202e\x7f\x00", "a": [1, None]}
    show.json_document(value)
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert out.isascii()
    assert json.loads(out) == value
