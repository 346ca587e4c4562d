"""Which lines of Prometheus text are read at all: the library's parser takes more, and guesses what was meant."""

import re

_LABEL = r'(?!__)[A-Za-z_]\w*="(?:[^"\\\n]|\\[\\n"])*"'
_DIGITS = r"\d{1,60}"
_LINE = re.compile(
    rf"""
      [A-Za-z_:][\w:]*                                                         # the name
      (?:\{{ (?: {_LABEL} (?: , {_LABEL} )* ,? )? \}})?                        # labels
      [ ] (?: [+-]? (?: (?: {_DIGITS} (?: \.\d{{0,60}} )? | \.{_DIGITS} ) (?: [eE][+-]?\d{{1,4}} )? | Inf ) | NaN )
      (?: [ ] -?\d{{1,20}} )?                                                  # a time
    | \# [ ] HELP [ ] [A-Za-z_:][\w:]* (?: [ ] .* )?
    | \# [ ] TYPE [ ] [A-Za-z_:][\w:]* [ ] (?: counter | gauge | histogram | summary | untyped | unknown )
    | \# (?: [ ] (?! \s* (?: HELP | TYPE ) ) [^"]* )?                            # a remark
    |                                                                          # nothing
    """,
    re.VERBOSE | re.ASCII,
)


def unreadable_lines(text: str) -> list[int]:
    """The numbers of all lines that are no sample, no head of a family and no remark."""
    lines = text.split("\n")
    return [number for number, line in enumerate(lines, start=1) if not _LINE.fullmatch(line.removesuffix("\r"))]
