"""Text from logs, servers and records, made safe to show: in Markdown and on a terminal."""

import re

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_MARKUP = re.compile(r"([\\`*{}\[\]<>#|!~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")  # inside a word, _ is no markup
SHOWN_CHARACTERS = 400
ONE_BYTE = 0x100


def plain(text: str) -> str:
    """One line without control, separator, bidirectional or invisible characters; those are spelt out."""
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"
    return _UNSAFE.sub(lambda match: _spelt(ord(match[0])), shown)


def markdown(text: str) -> str:
    """The same, with everything that Markdown or HTML would read as markup escaped."""
    return _MARKUP.sub(r"\\\1", plain(text))


def _spelt(point: int) -> str:
    return f"\\x{point:02x}" if point < ONE_BYTE else f"\\u{point:04x}"
