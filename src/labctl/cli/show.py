"""The one place where labctl prints; no character that moves, hides or reorders text reaches the terminal."""

import json
import os
import re
import sys
from pathlib import Path
from typing import TextIO

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def line(text: str) -> None:
    """Print one line of a result on stdout."""
    _write(f"{escaped(text)}\n", sys.stdout)


def lines(text: str) -> None:
    """Print a text of several lines on stdout, each made safe."""
    for part in text.removesuffix("\n").split("\n"):
        line(part)


def error(text: str) -> None:
    """Print one line on stderr."""
    _write(f"{escaped(text)}\n", sys.stderr)


def progress(text: str) -> None:
    """Print one line about work that goes on, on stderr."""
    error(text)


def redraw(text: str) -> None:
    """Write a line on a terminal's stderr over the one before."""
    _write(f"\r\x1b[K{escaped(text)}", sys.stderr)


def json_document(value: object) -> None:
    """Print one JSON document on stdout, ASCII only."""
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False)
    _write(text.replace("\x7f", "\\u007f") + "\n", sys.stdout)


def escaped(text: str) -> str:
    """A text with control, separator and bidirectional characters, and lone surrogates, spelt out."""
    return _UNSAFE.sub(lambda match: _spelt(ord(match[0])), text)


def _write(text: str, stream: TextIO) -> None:
    """Write at once; a reader that went away (a closed pipe or terminal) must not end a run that cannot be repeated."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def _spelt(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"  # noqa: PLR2004 (one byte)
