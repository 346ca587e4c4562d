"""What a plain YAML scalar may mean: only what every YAML library reads alike is typed or taken as text."""

import re
from enum import Enum

MAX_INT_DIGITS = 18
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_TYPED = {"true": True, "false": False, "null": None}
_WORDS = frozenset({"", "~", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "=", "<<"})
_HEX_DIGEST = re.compile(r"[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}")
_NUMBER_LIKE = re.compile(
    r"""
      [-+]?0[xXoObB][0-9A-Fa-f_]*                                   # other bases
    | [-+]?[0-9][0-9_]*(?::[0-9_]+)+(?:\.[0-9_]*)?                  # base 60: 1:30, 12:30:00
    | [-+]?(?:[0-9][0-9_,]*)?\.?[0-9_]*(?:[eE][-+]?[0-9_]+)?        # 010, +1, 1_000, .5, 1., 1e3, 12e34567
    | [-+]?\.(?:inf|nan)
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?                  # dates and times
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Reading(Enum):
    """How a plain scalar that has no value here is to be answered."""

    AMBIGUOUS = "ambiguous"
    TOO_LARGE = "too large"


def read_plain(text: str) -> str | int | float | bool | Reading | None:
    """The one value of a plain scalar, or why it has none."""
    if text in _TYPED:
        return _TYPED[text]
    if _HEX_DIGEST.fullmatch(text):  # the next digest may be all digits, or hold one `e`
        return Reading.AMBIGUOUS
    if _INTEGER.fullmatch(text) and text != "-0":
        return int(text) if len(text.lstrip("-")) <= MAX_INT_DIGITS else Reading.TOO_LARGE
    if _DECIMAL.fullmatch(text) and _is_shortest(text):
        return float(text)
    return Reading.AMBIGUOUS if _is_ambiguous(text) else text


def _is_shortest(text: str) -> bool:
    return (repr(float(text)) == text and float(text) != 0) or text == "0.0"


def _is_ambiguous(text: str) -> bool:
    if text.lower() in _WORDS:
        return True
    return any(digit in text for digit in "0123456789nN") and _NUMBER_LIKE.fullmatch(text) is not None
