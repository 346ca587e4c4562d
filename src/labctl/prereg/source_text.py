"""From a file's bytes to text that shows what it says: UTF-8 with no control or bidirectional character."""

import re
from collections import Counter
from collections.abc import Iterator

from labctl.codes import Code
from labctl.errors import Problem

MAX_FILE_BYTES = 1 << 20
MAX_COMPLAINTS = 20
_HIDDEN_RANGES = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, the two line ends of other systems among them
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional control
    "\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff"  # separators, byte order marks, surrogates
)
_HIDDEN_IN_SOURCE = re.compile(f"[\\t{_HIDDEN_RANGES}]")
_HIDDEN_IN_VALUE = re.compile(f"[{_HIDDEN_RANGES}]")


def hidden_character(value: str) -> str | None:
    """The first character of a value that a reader cannot see, escaped or not, as `U+XXXX`."""
    found = _HIDDEN_IN_VALUE.search(value)
    return _name(found[0]) if found else None


def guessed_lines(text: str) -> frozenset[int]:
    """The lines in which a character that `read_text` took out may have been part of a value, from 1."""
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    return frozenset(number for number, line in lines if _HIDDEN_IN_VALUE.search(line.rstrip("\r")))


def read_text(data: bytes, file: str) -> tuple[str | None, list[Problem]]:
    """The text with each forbidden character replaced by a blank, or None where there is none, and what is wrong."""
    if len(data) > MAX_FILE_BYTES:
        limit = f"at most {MAX_FILE_BYTES} bytes"
        return None, [Problem(Code.TOO_LARGE, f"{file}:1:1", limit, f"{len(data)} bytes", "split or shorten the file")]
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        got = f"the byte 0x{data[error.start]:02x}"
        return None, [Problem(Code.NOT_TEXT, f"{file}:{line}:{column}", "UTF-8", got, "save the file as UTF-8")]
    if _HIDDEN_IN_SOURCE.search(text) is None:
        return text, []
    problems = list(_complaints(text, file))[:MAX_COMPLAINTS]
    return _HIDDEN_IN_SOURCE.sub(" ", text.removeprefix("\ufeff")), problems


def _complaints(text: str, file: str) -> Iterator[Problem]:
    """One complaint for each kind of character, where it stands first."""
    first: dict[str, tuple[int, int]] = {}
    lines: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        found = list(_HIDDEN_IN_SOURCE.finditer(line))
        lines.update({match[0] for match in found})
        for match in found:
            first.setdefault(match[0], (number, match.start() + 1))
    for character, (number, column) in first.items():
        count = f" in {lines[character]} lines, first here" if lines[character] > 1 else ""
        where = f"{file}:{number}:{column}"
        yield Problem(Code.NOT_TEXT, where, "visible characters", f"{_name(character)}{count}", _advice(character))


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"


def _advice(character: str) -> str:
    match character:
        case "\r":
            return "end lines with a line feed alone, not with a carriage return (dos2unix)"
        case "\t":
            return 'indent with spaces, and write "\\t" inside double quotes'
        case "\ufeff":
            return "save the file without a byte order mark"
        case _:
            return "remove it"
