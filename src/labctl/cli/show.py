"""The one place where labctl prints; no character that moves, hides or reorders text reaches the terminal."""

import json
import re
import sys

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def line(text: str) -> None:
    """Print one line of a result on stdout."""
    print(escaped(text))  # noqa: T201 (this module is where printing is)


def lines(text: str) -> None:
    """Print a text of several lines on stdout, each made safe."""
    for part in text.removesuffix("\n").split("\n"):
        line(part)


def error(text: str) -> None:
    """Print one line on stderr."""
    print(escaped(text), file=sys.stderr, flush=True)  # noqa: T201 (this module is where printing is)


def progress(text: str) -> None:
    """Print one line about work that goes on, on stderr."""
    error(text)


def redraw(text: str) -> None:
    """Write a line on a terminal's stderr over the one before."""
    print(f"\r\x1b[K{escaped(text)}", end="", file=sys.stderr, flush=True)  # noqa: T201 (this module is where printing is)


def json_document(value: object) -> None:
    """Print one JSON document on stdout, ASCII only."""
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False)
    print(text.replace("\x7f", "\\u007f"))  # noqa: T201 (this module is where printing is)


def escaped(text: str) -> str:
    """A text with control, separator and bidirectional characters, and lone surrogates, spelt out."""
    return _UNSAFE.sub(lambda match: _spelt(ord(match[0])), text)


def _spelt(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"  # noqa: PLR2004 (one byte)
