import pytest

from labctl.report.escape import markdown, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\r\tc", "a\\x0ab\\x0d\\x09c"),
        ("\u202eabc\u2066\u2028\u200b\ufeff", "\\u202eabc\\u2066\\u2028\\u200b\\ufeff"),
        ("\x85\x9b\x7f", "\\x85\\x9b\\x7f"),
        ("\ud800", "\\ud800"),
        ("Zürich 12 °C", "Zürich 12 °C"),
    ],
)
def test_characters_that_move_hide_or_reorder_text_are_spelt_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_markup_is_escaped() -> None:
    assert markdown("a|b <i> `c` *d* _e_ [f](g)") == "a\\|b \\<i\\> \\`c\\` \\*d\\* \\_e\\_ \\[f\\](g)"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert plain("x" * 1000).endswith("… (1000 characters)")
