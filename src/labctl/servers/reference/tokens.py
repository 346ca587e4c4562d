"""The fixed vocabulary: 256 bytes, two marks and 252 common pieces; any text goes in, and valid text comes out."""

import codecs
from collections.abc import Iterable, Sequence

BYTE_COUNT = 256
END_OF_TEXT = 256
BEGIN_OF_TEXT = 257
FIRST_PIECE = 258

_STEMS = """
the of and to in is that for it as was with be by on not he this are or his from at which but have an had they
you were there one all we their has would when if so no will out up into them can only other new some could time
these two may then do first any my now such like our over man me even most made after also did many before must
through back years where much your way well down should because each just those people how too little state good
very make world still own see men work long get here between both life being under never day same another know
while last might great old year off come since against go came right used take three states himself few house
use during without again place around however small found thought went say part once general high upon school
every does got united left number course war until always away something fact water though less public put think
almost hand enough far took head yet government system better set told nothing night end why called find going
look asked later knew point next cache token list value line code function return word test table page paper
letter story reason question answer change order sum rate kind form color river road field morning winter garden
window bridge market
""".split()  # noqa: SIM905 (235 quoted words would hide the list)
_MARKS = (", ", ". ", ".\n", "; ", ": ", "? ", "\n\n", "  ", "ing", "ed", "er", "es", "ly", "ion", "al", "un", "re")
PIECES: tuple[bytes, ...] = tuple(f" {stem}".encode() for stem in _STEMS) + tuple(mark.encode() for mark in _MARKS)
VOCABULARY_SIZE = FIRST_PIECE + len(PIECES)

_ID_OF_PIECE = {piece: FIRST_PIECE + index for index, piece in enumerate(PIECES)}
_LONGEST = max(len(piece) for piece in PIECES)


def encode_text(text: str) -> list[int]:
    """The token ids of `text`, longest piece first, after the mark that begins every sequence."""
    data = text.encode("utf-8")
    ids = [BEGIN_OF_TEXT]
    start = 0
    while start < len(data):
        token, width = _longest_piece(data, start)
        ids.append(token)
        start += width
    return ids


def token_bytes(token: int) -> bytes:
    """What a token stands for; the two marks stand for nothing."""
    if token < BYTE_COUNT:
        return bytes([token])
    return PIECES[token - FIRST_PIECE] if token >= FIRST_PIECE else b""


def decode_tokens(tokens: Sequence[int]) -> str:
    """The whole text of `tokens`; bytes that are not UTF-8 become U+FFFD, as in `TextStream`."""
    stream = TextStream()
    return stream.push(tokens) + stream.finish()


class TextStream:
    """Turns tokens into text as they come and holds back the bytes of a character that is not complete yet."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, tokens: Iterable[int]) -> str:
        """The text that these tokens complete."""
        return self._decoder.decode(b"".join(token_bytes(token) for token in tokens))

    def finish(self) -> str:
        """What an unfinished character leaves at the end."""
        return self._decoder.decode(b"", final=True)


def _longest_piece(data: bytes, start: int) -> tuple[int, int]:
    for width in range(min(_LONGEST, len(data) - start), 1, -1):
        token = _ID_OF_PIECE.get(data[start : start + width])
        if token is not None:
            return token, width
    return data[start], 1
